import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import {
  createTestDatabase,
  eventually,
  PATIENCE_MS,
  type HttpClient,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { topupsKnown } from '../harness/known-topups.js';
import type { Json } from '../harness/order-steps.js';
import type { Upstream } from './upstream.js';

export interface Buyer {
  readonly id: string;
  readonly api: HttpClient;
}

/**
 * Fast enough for a test, but slow enough to tell faults apart. For example, a lookup still comes before the read lag
 * ends.
 */
export const FAST = {
  PROVIDER_REQUESTS_PER_SECOND: '400',
  PROVIDER_READ_LAG_MS: '1300',
  PROVIDER_TIMEOUT_MS: '4000',
  SWEEP_INTERVAL_MS: '300',
  // The default. No process dies here, so a shorter lease would only expire on a slow machine.
  LEASE_MS: '15000',
};

const OPEN_STATUSES = ['pending', 'processing', 'canceling'];

/** The whole service in this process, connected to simulated providers over HTTP, and a webhook receiver. */
export class LiveShop {
  readonly buyers: Buyer[] = [];

  constructor(
    readonly database: TestDatabase,
    readonly office: TestService,
    readonly receiver: TestReceiver,
    readonly upstreams: readonly Upstream[],
    private readonly partnerApi: (key: string) => HttpClient,
  ) {}

  static async open(upstreams: readonly Upstream[]): Promise<LiveShop> {
    const database = await createTestDatabase();
    const secret = randomBytes(20).toString('hex');
    const callbacks = { CALLBACK_HOST: '127.0.0.1', CALLBACK_PORT: '0', CALLBACK_SECRET: secret };
    const settings = upstreams.map((upstream) => upstream.settings(upstream.url));
    const env: Record<string, string> = Object.assign({}, FAST, callbacks, ...settings);
    const office = await startTestService({ database, env });
    for (const upstream of upstreams)
      upstream.callBack?.(`${office.process.callbacksUrl}/callbacks/${upstream.name}/${secret}`);
    const shop = new LiveShop(database, office, await startReceiver(), upstreams, (key) =>
      office.partnerApi(key),
    );
    await shop.catalogRead();
    return shop;
  }

  async close(): Promise<void> {
    await this.office.stop();
    await this.receiver.close();
    await this.database.drop();
    await Promise.all(this.upstreams.map((upstream) => upstream.close()));
  }

  /** Waits until a buyer sees a package of each provider, and the worker knows all top-ups. */
  async catalogRead(): Promise<void> {
    const { api } = await this.buyer(0);
    await eventually('the catalog is there', async () => {
      const found = await Promise.all(
        this.upstreams.map(({ packageId }) => api.get(`/v1/catalog/${packageId}`)),
      );
      return found.every(({ status }) => status === 200);
    });
    await topupsKnown(this.database);
  }

  /** Creates a partner with a live key, a webhook endpoint and `amount` cents. */
  async buyer(amount: number): Promise<Buyer> {
    const { id } = await this.office.createPartner();
    const buyer = { id, api: this.partnerApi(await this.office.createKey(id, 'live')) };
    const endpoint = { mode: 'live', url: this.receiver.url };
    const answer = await this.office.admin.post(`/internal/v1/partners/${id}/webhook-endpoints`, endpoint);
    expect(answer.status, answer.text).toBe(201);
    if (amount > 0) await this.deposit(buyer, amount);
    this.buyers.push(buyer);
    return buyer;
  }

  async deposit({ id }: Buyer, amount: number, reference = 'first-deposit'): Promise<void> {
    const answer = await this.office.admin.post(`/internal/v1/partners/${id}/wallet/deposits`, {
      amount: { amount, currency: 'USD' },
      reference,
    });
    expect(answer.status, answer.text).toBe(201);
  }

  /** The reference of an order or a top-up in provider calls. */
  async referenceOf(id: string): Promise<string> {
    return (await this.row(id))['provider_reference'] as string;
  }

  /** The row of an order, a top-up or an eSIM. */
  async row(id: string): Promise<Json> {
    const table = { ord: 'orders', top: 'topups' }[id.slice(0, 3)] ?? 'esims';
    const { rows } = await this.database.pool.query<Json>(`SELECT * FROM ${table} WHERE id = $1`, [id]);
    return rows[0]!;
  }

  /** Makes the eSIM due for a poll, and waits until its row satisfies `holds`. */
  async pollUntil(esimId: string, holds: (row: Json) => boolean): Promise<void> {
    await this.database.pool.query('UPDATE esims SET next_poll_at = now() WHERE id = $1', [esimId]);
    await eventually(`eSIM ${esimId} was looked at`, async () => holds(await this.row(esimId)));
  }
}

/** The current price for this partner in cents, according to the catalog. */
export async function priceOf({ api }: Buyer, packageId: string): Promise<number> {
  // The API's cache may lag behind the table by a second.
  const answer = await eventually('the package is shown', async () => {
    const shown = await api.get(`/v1/catalog/${packageId}`);
    return shown.status === 200 ? shown : null;
  });
  return answer.body.data.price.amount as number;
}

/** Places an order and returns it as accepted. */
export async function order(
  { api }: Buyer,
  packageId: string,
  quantity = 1,
  more: object = {},
): Promise<Json> {
  const answer = await api.post('/v1/orders', { package_id: packageId, quantity, ...more });
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

/** Waits until the order or top-up has ended, and returns it. */
export async function settled({ api }: Buyer, { id }: Json, withinMs = PATIENCE_MS): Promise<Json> {
  const path = `/v1/${(id as string).startsWith('ord_') ? 'orders' : 'topups'}/${id}`;
  return eventually(
    `${id} ends`,
    async () => {
      const answer = await api.get(path);
      expect(answer.status, answer.text).toBe(200);
      const data = answer.body.data as Json;
      return OPEN_STATUSES.includes(data['status'] as string) ? null : data;
    },
    withinMs,
  );
}

export async function buy(buyer: Buyer, packageId: string, quantity = 1, more: object = {}): Promise<Json> {
  return settled(buyer, await order(buyer, packageId, quantity, more));
}

export async function topUp(
  { api }: Buyer,
  esimId: string,
  packageId: string,
  more: object = {},
): Promise<Json> {
  const answer = await api.post('/v1/topups', { esim_id: esimId, package_id: packageId, ...more });
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

export async function cancel({ api }: Buyer, { id }: Json): Promise<Json> {
  const answer = await api.post(`/v1/orders/${id}/cancel`);
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

export function esimIdsOf(order: Json): string[] {
  return (order['esims'] as { esim_id: string }[]).map(({ esim_id }) => esim_id);
}

/** All items of a list operation, in order. */
export async function readAll({ api }: Buyer, path: string): Promise<Json[]> {
  const items: Json[] = [];
  for (let cursor = ''; ;) {
    const answer = await api.get(`${path}?limit=100${cursor}`);
    expect(answer.status, answer.text).toBe(200);
    items.push(...(answer.body.data as Json[]));
    if (!answer.body.has_more) return items;
    cursor = `&cursor=${answer.body.next_cursor}`;
  }
}

/** Posted, held and available, in cents. */
export async function money({ api }: Buyer): Promise<readonly [number, number, number]> {
  const { data } = (await api.get('/v1/balance')).body;
  if (data.length === 0) return [0, 0, 0];
  const [{ posted, held, available }] = data;
  return [posted.amount, held.amount, available.amount];
}

/** The statement, oldest first, as type and cents. */
export async function statement(buyer: Buyer): Promise<[string, number][]> {
  const items = await readAll(buyer, '/v1/transactions');
  return items.reverse().map((item) => [item['type'] as string, item['amount'].amount as number]);
}
