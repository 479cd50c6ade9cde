import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  eventually,
  type HttpClient,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { freePort } from '../../chaos/free-port.js';
import { placeOrder } from '../harness/order-steps.js';
import { askRedis, redisMissing } from '../harness/redis.js';
import { SentinelSetup } from '../harness/redis-sentinel.js';

const missing = redisMissing();
if (missing) console.warn(`Redis behind sentinels is not tested: ${missing}`);

/** Far longer than a round, so that work is triggered by a signal or a delayed job, not by a sweep. */
const NO_SWEEP = { SWEEP_INTERVAL_MS: '60000' };
/** Longer than the delays for which a worker uses its own timer. */
const RETRY_MS = 2_500;
const RETRIES = { WEBHOOK_RETRY_DELAYS_MS: Array(5).fill(RETRY_MS).join(',') };
const BURST = 30;
const LIMITS = { RATE_LIMIT_PER_MINUTE: '60', RATE_LIMIT_BURST: String(BURST) };
/** Detecting a frozen node takes a while, longer on a busy machine. */
const WITHIN_MS = 120_000;

/** Queries each server that may hold data. */
type AskServers = <T>(question: (client: Redis) => Promise<T>) => Promise<readonly T[]>;

/** Separate roles as in production, on one Redis setup, with a partner and its endpoint. */
class Shop {
  readonly logLines: string[] = [];
  private readonly seen = new Set<string>();
  private readonly started: TestService[] = [];

  private constructor(
    private readonly redisUrl: string,
    private readonly askServers: AskServers,
    readonly office: TestService,
    private readonly receiver: TestReceiver,
  ) {}

  /** Opens the shop with a worker that hardly ever sweeps. */
  static async open(redisUrl: string, askServers: AskServers): Promise<Shop> {
    const office = await startTestService({ role: 'admin' });
    const shop = new Shop(redisUrl, askServers, office, await startReceiver());
    // Each event is refused once, and retried by a delayed job.
    shop.receiver.answer = (_nth, { body }, response) => {
      response.writeHead(shop.seen.has(body) ? 200 : 500).end();
      shop.seen.add(body);
    };
    await shop.start('api', LIMITS);
    await shop.start('worker', NO_SWEEP);
    return shop;
  }

  /** Creates a partner with an endpoint, and returns a client with its key. */
  async newPartner(): Promise<HttpClient> {
    const { id, sandboxKey } = await this.office.createPartner();
    const made = await this.office.admin.post(`/internal/v1/partners/${id}/webhook-endpoints`, {
      mode: 'sandbox',
      url: this.receiver.url,
    });
    expect(made.status, made.text).toBe(201);
    return this.started[0]!.partnerApi(sandboxKey);
  }

  /** Starts another process of the role on the same database and Redis. */
  async start(role: 'api' | 'worker', env: Record<string, string>): Promise<TestService> {
    const service = await startTestService({
      role,
      database: this.office.database,
      logLines: this.logLines,
      env: { REDIS_URL: this.redisUrl, ...RETRIES, ...env },
    });
    this.started.push(service);
    return service;
  }

  /** Waits until this many workers receive signals. */
  async listening(workers: number): Promise<void> {
    await eventually(
      `${workers} workers hear signals`,
      async () => {
        const counts = await this.askServers((client) => client.pubsub('NUMSUB', 'partner_esim_work'));
        return counts.reduce((sum, [, count]) => sum + Number(count), 0) === workers;
      },
      WITHIN_MS,
    );
  }

  /**
   * Places an order, which a signal starts. Its event is refused once and retried by a delayed job. Also checks that
   * the bucket of the partner's key is in Redis and enforces the limit.
   */
  async makeRound(): Promise<void> {
    await this.listening(1);
    const api = await this.newPartner();
    const order = await placeOrder(api, { package_id: 'pkg_fr_1gb_7d' });
    const [first, second] = await this.deliveredTwice(order['id'] as string);
    expect(second!.receivedAtMs - first!.receivedAtMs).toBeGreaterThanOrEqual(RETRY_MS - 100);
    await this.limits(api);
  }

  /** Waits until its event has arrived twice, because the first attempt was refused. */
  async deliveredTwice(orderId: string): Promise<TestReceiver['received']> {
    return eventually(
      'the event, and once more',
      () => {
        const ofOrder = this.receiver.received.filter(({ body }) => body.includes(orderId));
        return ofOrder.length >= 2 && ofOrder;
      },
      WITHIN_MS,
    );
  }

  async close(): Promise<void> {
    for (const service of this.started.reverse()) await service.stop();
    await this.office.stop();
    await this.receiver.close();
  }

  private async limits(api: HttpClient): Promise<void> {
    const buckets = (): Promise<readonly string[][]> => this.askServers((client) => client.keys('rate:*'));
    await this.askServers(async (client) => {
      for (const bucket of await client.keys('rate:*')) await client.del(bucket).catch(() => 0);
    });
    // After a failure the process uses PostgreSQL for five seconds.
    await eventually('a bucket in Redis', async () => {
      await api.get('/v1/me');
      return (await buckets()).flat().length > 0;
    });
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: 3 * BURST }, () => api.get('/v1/me')));
    const refilled = Math.ceil((performance.now() - startedAt) / 1_000);
    const passed = answers.filter(({ status }) => status === 200).length;
    // On a busy machine Redis may be too slow for some calls, which PostgreSQL's bucket then limits.
    expect(passed).toBeLessThanOrEqual(2 * (BURST + refilled));
    expect(answers.every(({ status }) => status === 200 || status === 429)).toBe(true);
    expect(answers.some(({ status }) => status === 429)).toBe(true);
  }
}

const TEST_MS = 480_000;
const FAILOVER_MS = 120_000;

describe.skipIf(missing !== null)('with Redis behind sentinels (D1)', () => {
  const onStderr = vi.spyOn(console, 'error').mockReturnValue();
  let setup: SentinelSetup;
  let shop: Shop;

  beforeAll(async () => {
    setup = await SentinelSetup.start({ replicas: 2 });
    // An unreachable sentinel must not prevent the start.
    const url = setup.url({ hosts: [`127.0.0.1:${await freePort()}`] });
    shop = await Shop.open(url, async (question) => [
      await askRedis(setup.optionsOf(await setup.primaryPort()), question),
    ]);
  });

  afterAll(async () => {
    await shop?.close();
    await setup?.stop();
    onStderr.mockRestore();
  });

  it('accepts orders, retries deliveries and limits calls', { timeout: TEST_MS }, async () => {
    await shop.makeRound();
    const jobs = await askRedis(setup.optionsOf(await setup.primaryPort()), (client) =>
      client.keys('bull:*'),
    );
    expect(jobs.length, 'under the same names as on one server').toBeGreaterThan(0);
  });

  it.each([
    ['dies', 'SIGKILL'],
    ['freezes, and keeps its connections', 'SIGSTOP'],
  ] as const)(
    'loses no order when the primary %s, and continues with the next primary by itself',
    { timeout: TEST_MS },
    async (_, signal) => {
      const sweeper = await shop.start('worker', { SWEEP_INTERVAL_MS: '250' });
      await shop.listening(2);
      const lost = await setup.primaryPort();
      if (signal === 'SIGKILL') await setup.server(lost).kill();
      else setup.server(lost).freeze();
      const { id } = await placeOrder(await shop.newPartner(), { package_id: 'pkg_fr_1gb_7d' });
      await shop.deliveredTwice(id as string);
      await eventually(
        'a replica is the primary',
        async () => (await setup.primaryPort()) !== lost,
        FAILOVER_MS,
      );
      await shop.listening(2);
      await sweeper.stop();
      await shop.makeRound();
    },
  );

  it('reports what is wrong with a password, without the password', { timeout: TEST_MS }, async () => {
    const wrong = `wrong@${setup.passwords[0]}`;
    const stranger = await Shop.open(setup.url({ password: wrong }), () => Promise.resolve([]));
    await eventually('the refusal is logged', () =>
      stranger.logLines.some((line) => line.includes('WRONGPASS')),
    );
    await stranger.close();
    expect(onStderr, 'nobody but the log says anything').not.toHaveBeenCalled();
    const said = [...shop.logLines, ...stranger.logLines].join('\n');
    for (const password of [wrong, ...setup.passwords]) {
      expect(said).not.toContain(password);
      expect(said).not.toContain(encodeURIComponent(password));
    }
  });
});
