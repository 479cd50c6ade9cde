import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../chaos/free-port.js';
import { DatabaseProxy, type Lost } from '../../chaos/database-proxy.js';
import {
  createTestDatabase,
  eventually,
  leastOf,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { Shop } from './shop.js';

const PACKAGE = 'pkg_fr_1gb_7d';
/** Four times a second: an order, a list, and other reads that need the database. */
const TURN_MS = 250;
const READS_A_TURN = 2;
/** The documented recovery time after a network failure to the database. */
const RECOVERY_MS = 30_000;
const MAX_TRIES = 3;
/** The service's defaults, which the harness raises for busy machines. */
const OWN_LIMITS = {
  DATABASE_POOL_WAIT_MS: '2000',
  DATABASE_STATEMENT_TIMEOUT_MS: '8000',
  DATABASE_STATEMENT_TIMEOUT_WORKER_MS: '15000',
  LEASE_MS: '15000',
};

interface Sight {
  readonly atMs: number;
  readonly status: number;
}

/** A role behind the proxy, with the history of its `/readyz`. */
class WatchedRole {
  readonly sights: Sight[] = [];
  private isStopped = false;
  private readonly watch: Promise<void>;

  private constructor(
    readonly service: TestService,
    private readonly readyz: string,
  ) {
    this.watch = this.look();
  }

  static async start(role: 'api' | 'worker', database: TestDatabase): Promise<WatchedRole> {
    const port = await freePort();
    const env = { ...OWN_LIMITS, OPS_PORT: String(port) };
    const service = await startTestService({ role, database, env });
    return new WatchedRole(service, `http://127.0.0.1:${port}/readyz`);
  }

  /** Whether a check after `atMs`, or the last one, returned `status`. */
  saidSince(atMs: number, status: number): boolean {
    return this.sights.some((sight) => sight.atMs > atMs && sight.status === status);
  }

  get lastStatus(): number | undefined {
    return this.sights.at(-1)?.status;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.watch;
    await this.service.stop();
  }

  private async look(): Promise<void> {
    while (!this.isStopped) {
      const answer = await fetch(this.readyz).catch(() => null);
      if (answer) this.sights.push({ atMs: performance.now(), status: answer.status });
      await sleep(200);
    }
  }
}

let database: TestDatabase;
let admin: TestService;
let proxy: DatabaseProxy;
let api: WatchedRole;
let worker: WatchedRole;
let receiver: TestReceiver;
let partner: { readonly id: string; readonly sandboxKey: string };

beforeAll(async () => {
  database = await createTestDatabase();
  admin = await startTestService({ role: 'admin', database });
  partner = await admin.createPartner();
  receiver = await startReceiver();
  const endpoint = await admin.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
    mode: 'sandbox',
    url: receiver.url,
  });
  expect(endpoint.status, endpoint.text).toBe(201);
  proxy = await DatabaseProxy.start(database.url);
  const behindProxy = { ...database, url: proxy.url };
  worker = await WatchedRole.start('worker', behindProxy);
  api = await WatchedRole.start('api', behindProxy);
});
afterAll(async () => {
  await api.stop();
  await worker.stop();
  await proxy.stop();
  await admin.stop();
  await receiver.close();
  await database.drop();
});

/**
 * Maximum number of concurrent calls, so that a busy machine gets fewer. A partner may have two lists open, and a third one
 * would get a 429.
 */
const MOST = { orders: 12, lists: 2, reads: 16 };

/** A partner's load of 16 calls a second until `stop`. Orders are retried until they succeed. */
class Load {
  readonly shop = new Shop(api.service.partnerApi(partner.sandboxKey));
  /** Statuses of the lists and the other reads. */
  readonly statuses = new Set<number>();
  private readonly underWay = { orders: 0, lists: 0, reads: 0 };
  private readonly failures: unknown[] = [];
  private isStopped = false;
  private readonly driver = this.drive();

  /** Stops, and waits for the calls in progress. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.driver;
    await eventually('all calls are answered', () => Object.values(this.underWay).every((n) => n === 0));
    expect(this.failures).toEqual([]);
  }

  private async drive(): Promise<void> {
    const client = api.service.partnerApi(partner.sandboxKey);
    const read = async (path: string): Promise<void> =>
      void this.statuses.add((await client.get(path)).status);
    while (!this.isStopped) {
      this.begin('orders', () => this.shop.buy(PACKAGE, 1, false));
      this.begin('lists', () => read('/v1/orders?limit=2'));
      for (let nth = 0; nth < READS_A_TURN; nth++) this.begin('reads', () => read('/v1/me'));
      await sleep(TURN_MS);
    }
  }

  private begin(kind: keyof typeof MOST, call: () => Promise<void>): void {
    if (this.underWay[kind] >= MOST[kind]) return;
    this.underWay[kind]++;
    call()
      .catch((error: unknown) => this.failures.push(error))
      .finally(() => this.underWay[kind]--);
  }
}

/** Ids of orders that a webhook has announced as issued. */
const announced = (): Set<string> =>
  new Set(
    receiver.received
      .map(({ body }) => JSON.parse(body) as { type: string; data: { order_id?: string } })
      .filter(({ type }) => type === 'order.issued')
      .map(({ data }) => data.order_id!),
  );

/** Checks that every accepted order exists once, was issued once, and was announced. */
async function expectWhole({ accepted }: Shop): Promise<void> {
  const ids = [...accepted.values()].map(({ orderId }) => orderId);
  expect(new Set(ids).size).toBe(ids.length);
  await eventually('every order is announced', () => {
    const known = announced();
    return ids.every((id) => known.has(id));
  });
  const { rows } = await database.pool.query<{ orders: number; esims: number; events: number }>(
    `SELECT count(*)::int AS orders, sum((SELECT count(*) FROM esims e WHERE e.order_id = o.id))::int AS esims,
       sum((SELECT count(*) FROM events v WHERE v.type = 'order.issued' AND v.mode = 'sandbox'
            AND v.body::jsonb -> 'data' ->> 'order_id' = o.id))::int AS events
     FROM orders o WHERE o.id = ANY ($1)`,
    [ids],
  );
  expect(rows).toEqual([{ orders: ids.length, esims: ids.length, events: ids.length }]);
  const all = await database.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM orders');
  expect(all.rows[0]!.n).toBe(placedBefore + ids.length);
}

/** Orders of the previous tests. */
let placedBefore = 0;
beforeEach(async () => {
  const { rows } = await database.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM orders');
  placedBefore = rows[0]!.n;
});

/** Silences all open connections, and measures the time until a later order is announced. */
async function recoveryMs({ shop }: Load, lost: Lost): Promise<number> {
  proxy.swallow(lost);
  const lostAtMs = performance.now();
  const before = shop.accepted.size;
  await eventually('an order of later is announced', () => {
    const known = announced();
    // Orders in progress may have been accepted before the failure.
    const later = [...shop.accepted.values()].slice(before + MOST.orders);
    return later.some(({ orderId }) => known.has(orderId));
  });
  return performance.now() - lostAtMs;
}

describe('database connections that silently lose data under load', () => {
  it.each<Lost>(['both', 'answers', 'requests'])(
    'recovers within 30 s without a lost or duplicate order, and /readyz fails meanwhile: %s lost',
    async (lost) => {
      const load = new Load();
      try {
        await eventually('orders flow', () => load.shop.accepted.size > 10 && announced().size > 5);
        const startedAtMs = performance.now();
        expect(await leastOf(RECOVERY_MS, () => recoveryMs(load, lost), MAX_TRIES)).toBeLessThan(RECOVERY_MS);
        for (const role of [api, worker]) {
          expect(role.saidSince(startedAtMs, 503)).toBe(true);
          await eventually('it is ready again', () => role.lastStatus === 200);
        }
        // No caller gets a 429.
        expect([...load.statuses].filter((status) => ![200, 503].includes(status))).toEqual([]);
      } finally {
        await load.stop();
      }
      await expectWhole(load.shop);
    },
  );

  it('places every order once when connections are reset during transactions', async () => {
    const load = new Load();
    try {
      for (let nth = 0; nth < 5; nth++) {
        await sleep(400);
        proxy.reset();
      }
      await sleep(400);
    } finally {
      await load.stop();
    }
    await expectWhole(load.shop);
  });
});
