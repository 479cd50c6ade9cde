import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisBuckets } from '../../src/auth/redis-buckets.js';
import { loadConfig } from '../../src/config/index.js';
import { eventually, testEnvironment } from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { redisMissing } from '../harness/redis.js';
import { ClusterSetup } from '../harness/redis-cluster.js';
import { Shop } from './shop.js';

const missing = redisMissing();
if (missing) console.warn(`a Redis cluster is not tested: ${missing}`);

const TEST_MS = 480_000;
const FAILOVER_MS = 120_000;
/** All queues of the service lie in its slot. */
const QUEUES = '{bull}';

describe.skipIf(missing !== null)('with a Redis cluster (D1)', () => {
  let cluster: ClusterSetup;
  let shop: Shop;

  beforeAll(async () => {
    cluster = await ClusterSetup.start({ replicas: { of: QUEUES, count: 2 } });
    shop = await Shop.open(cluster.url, (question) => cluster.askAll(question));
  });

  afterAll(async () => {
    await shop?.close();
    await cluster?.stop();
  });

  it('takes orders, retries deliveries and limits', { timeout: TEST_MS }, async () => {
    await shop.makeRound();
    const keys = (await cluster.askAll((client) => client.keys('*bull*'))).flat();
    expect(keys.length).toBeGreaterThan(0);
    expect(keys.filter((key) => !key.startsWith(`${QUEUES}:`))).toEqual([]);
  });

  it('charges many keys at once, whose buckets lie on several nodes', async () => {
    const config = loadConfig(testEnvironment('postgres://user@localhost/db', { REDIS_URL: cluster.url }));
    const buckets = new RedisBuckets(config, pino({ level: 'silent' }));
    const shape = { burst: 5, microsecondsPerToken: 3_600_000_000 };
    let tries = 0;
    // A node is connected to by its first call; on a busy machine that one may come too late.
    const states = await eventually('Redis answers in time', () => {
      const round = tries++;
      const keys = Array.from({ length: 20 }, (_, nth) => [`many-${round}-${nth}`, 8] as const);
      return buckets.charge(new Map(keys), shape);
    });
    expect([...states.values()].map(({ granted }) => granted)).toEqual(Array(20).fill(5));
    const holders = await cluster.askAll(async (client) => (await client.keys('rate:many-*')).length);
    expect(holders.filter((count) => count > 0).length).toBeGreaterThan(1);
    await buckets.onApplicationShutdown();
  });

  it('hears signals again from another node after its connection was cut', { timeout: TEST_MS }, async () => {
    await shop.listening(1);
    await cluster.askAll((client) => client.client('KILL', 'TYPE', 'pubsub'));
    await shop.makeRound();
  });

  it.each([
    ['dies', 'SIGKILL'],
    ['freezes, and keeps its connections', 'SIGSTOP'],
  ] as const)(
    'loses no order when the node of the queues %s, and goes on with its replica by itself',
    { timeout: TEST_MS },
    async (_, signal) => {
      const sweeper = await shop.start('worker', { SWEEP_INTERVAL_MS: '250' });
      await shop.listening(2);
      const lost = await cluster.holderOf(QUEUES);
      await cluster.lose(lost!, signal);
      const { id } = await placeOrder(await shop.newPartner(), { package_id: 'pkg_fr_1gb_7d' });
      await shop.deliveredTwice(id as string);
      await eventually('a replica has its slots', () => cluster.holderOf(QUEUES), FAILOVER_MS);
      await shop.listening(2);
      await sweeper.stop();
      await shop.makeRound();
    },
  );

  it('logs neither the password nor keys of several slots in one call', () => {
    const said = shop.logLines.join('\n');
    expect(said).not.toContain('CROSSSLOT');
    expect(said).not.toContain(cluster.password);
  });
});
