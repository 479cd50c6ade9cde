import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../harness/free-port.js';
import { DatabaseProxy, type Lost } from '../harness/database-proxy.js';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { Shop } from './shop.js';

const PACKAGE = 'pkg_fr_1gb_7d';
/** Eight times a second an order, a list, and reads of what needs the database as well. */
const TURN_MS = 125;
const READS = ['/v1/orders?limit=2', ...Array.from({ length: 8 }, () => '/v1/me')];
/** What a partner is promised of a network that has lost its connections to the database. */
const RECOVERY_MS = 30_000;
/** The service's own values, which the harness raises for machines that are busy. */
const OWN_LIMITS = {
  DATABASE_POOL_WAIT_MS: '2000',
  DATABASE_STATEMENT_TIMEOUT_MS: '8000',
  LEASE_MS: '15000',
};

interface Sight {
  readonly atMs: number;
  readonly status: number;
}

/** A role behind the proxy, and what its `/readyz` says over time. */
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

  /** Whether it said `status` after `atMs`, and of the last look. */
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
      const { status } = await fetch(this.readyz);
      this.sights.push({ atMs: performance.now(), status });
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

/** Calls of a partner, 80 a second, until it is stopped; orders are insisted on. */
class Load {
  readonly shop = new Shop(api.service.partnerApi(partner.sandboxKey));
  private readonly orders: Promise<void>[] = [];
  private readonly reads: Promise<void>[] = [];
  /** Of the reads. */
  readonly statuses = new Set<number>();
  private isStopped = false;
  private readonly driver = this.drive();

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.driver;
    await Promise.all([...this.orders, ...this.reads]);
  }

  private async drive(): Promise<void> {
    const client = api.service.partnerApi(partner.sandboxKey);
    while (!this.isStopped) {
      this.orders.push(this.shop.buy(PACKAGE, 1, false));
      this.reads.push(
        ...READS.map((path) => client.get(path).then(({ status }) => void this.statuses.add(status))),
      );
      await sleep(TURN_MS);
    }
  }
}

/** The ids of orders that a webhook has announced as issued. */
const announced = (): Set<string> =>
  new Set(
    receiver.received
      .map(({ body }) => JSON.parse(body) as { type: string; data: { order_id?: string } })
      .filter(({ type }) => type === 'order.issued')
      .map(({ data }) => data.order_id!),
  );

/** Everything that was accepted is there once, was issued once, and was announced. */
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

/** Orders of the tests before. */
let placedBefore = 0;
beforeEach(async () => {
  const { rows } = await database.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM orders');
  placedBefore = rows[0]!.n;
});

describe('connections to the database that lose what goes over them, under 80 calls a second', () => {
  it.each<Lost>(['both', 'answers', 'requests'])(
    'are replaced within 30 s, with no order lost or doubled, and /readyz says so meanwhile: %s lost',
    async (lost) => {
      const load = new Load();
      await eventually('orders flow', () => load.shop.accepted.size > 10 && announced().size > 5);
      proxy.swallow(lost);
      const lostAtMs = performance.now();
      const acceptedBefore = load.shop.accepted.size;
      await eventually(
        'an order of later is announced',
        () => {
          const known = announced();
          return [...load.shop.accepted.values()]
            .slice(acceptedBefore + 20)
            .some((o) => known.has(o.orderId));
        },
        RECOVERY_MS,
      );
      const resumedAtMs = performance.now();
      await load.stop();
      for (const role of [api, worker]) {
        expect(role.saidSince(lostAtMs, 503)).toBe(true);
        await eventually(
          'it is ready again',
          () => role.saidSince(resumedAtMs, 200) && role.lastStatus === 200,
        );
      }
      // Nobody is told that it asks for too much.
      expect([...load.statuses].sort()).toEqual([200, 503]);
      await expectWhole(load.shop);
    },
  );

  it('may be reset in the midst of transactions: every order is placed once', async () => {
    const load = new Load();
    for (let nth = 0; nth < 5; nth++) {
      await sleep(400);
      proxy.reset();
    }
    await sleep(400);
    await load.stop();
    await expectWhole(load.shop);
  });
});
