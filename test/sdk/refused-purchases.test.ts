import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  EsimClient,
  endsPurchase,
  type Intent,
  IntentConflictError,
  type IntentStore,
  isApiError,
  type Order,
  Purchases,
  SQL_STORE_TABLES,
  SqlIntentStore,
} from '../../sdk/src/index.js';
import { FileIntentStore } from '../../sdk/src/node/file-stores.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';

const PACKAGE = 'pkg_fr_1gb_7d';
const ORDER = { package_id: PACKAGE };

let service: TestService;
let partner: TestPartner;
let folder: string;
let esim: EsimClient;
beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  folder = await mkdtemp(path.join(tmpdir(), 'intents-'));
  esim = clientOf();
  await service.database.pool.query(SQL_STORE_TABLES);
});
afterAll(async () => {
  await service.stop();
  await rm(folder, { recursive: true });
});

function clientOf(onSend?: (request: Request) => Promise<void>, maxTries = 1): EsimClient {
  const watching = async (...call: Parameters<typeof fetch>): Promise<Response> => {
    await onSend?.(new Request(...call));
    return fetch(...call);
  };
  return new EsimClient({
    apiKey: partner.sandboxKey,
    baseUrl: service.process.api!.url,
    maxTries,
    fetch: watching,
  });
}

/** Opens the store like another process. */
function openStore(kind: string): IntentStore {
  if (kind === 'file') return new FileIntentStore(path.join(folder, 'intents'));
  return new SqlIntentStore(async (text, parameters) => {
    const { rows } = await service.database.pool.query<Record<string, unknown>>(text, [...parameters]);
    return rows;
  });
}

async function sell(isSold: boolean): Promise<void> {
  await service.database.pool.query(`UPDATE packages SET available = $1 WHERE mode = 'sandbox' AND id = $2`, [
    isSold,
    PACKAGE,
  ]);
  await service.database.pool.query('UPDATE catalog_versions SET version = version + 1');
}

async function whileNotSold<T>(work: () => Promise<T>): Promise<T> {
  await sell(false);
  try {
    return await work();
  } finally {
    await sell(true);
  }
}

const caught = (thrown: unknown): unknown => thrown;
const openIds = async (store: IntentStore): Promise<string[]> =>
  (await store.listOpen()).map(({ id }) => id).sort();

/** An order bought more than 24 hours ago by a process that died before it knew. */
async function boughtBefore(store: IntentStore, id: string): Promise<Order> {
  const intent = { id, idempotencyKey: crypto.randomUUID(), kind: 'order' as const };
  const body = { ...ORDER, reference: id };
  await store.add({ ...intent, body });
  const order = await esim.orders.place(body, { idempotencyKey: intent.idempotencyKey });
  await service.database.pool.query('DELETE FROM idempotency_keys');
  return order;
}

describe.each(['file', 'sql'])('a refused purchase with its intents in %s', (kind) => {
  const id = (name: string): string => `${kind}-${name}`;

  it('counts as bought when its reference exists, even if the package is gone', async () => {
    const store = openStore(kind);
    const bought = await boughtBefore(store, id('delisted'));
    const resumed = await whileNotSold(() => new Purchases(esim, store).resume());
    expect(resumed).toMatchObject([{ error: null, result: { id: bought.id } }]);
    expect(await store.listOpen()).toEqual([]);
    // The purchase stays bought, because the same id always means the same purchase.
    await service.database.pool.query('DELETE FROM idempotency_keys');
    const again = await whileNotSold(() => new Purchases(esim, store).placeOrder(id('delisted'), ORDER));
    expect(again.id).toBe(bought.id);
  });

  it('stays open when nobody knows whether its reference exists', async () => {
    const store = openStore(kind);
    const bought = await boughtBefore(store, id('unsure'));
    const cut = clientOf((request) =>
      request.method === 'GET' ? Promise.reject(new TypeError('cut')) : Promise.resolve(),
    );
    const [unsure] = await whileNotSold(() => new Purchases(cut, store).resume());
    expect(unsure).toMatchObject({ result: null, error: { name: 'EsimConnectionError' } });
    expect(endsPurchase(unsure!.error)).toBe(false);
    expect(await openIds(store)).toEqual([id('unsure')]);
    const resumed = await whileNotSold(() => new Purchases(esim, store).resume());
    expect(resumed).toMatchObject([{ error: null, result: { id: bought.id } }]);
  });

  it('is retried with a new key, which is stored before the first byte is sent', async () => {
    const store = openStore(kind);
    const sent: { key: string | null; open: (string | null)[] }[] = [];
    const watching = clientOf(async (request) => {
      if (request.method !== 'POST') return;
      const open = (await openStore(kind).listOpen()).map(({ idempotencyKey }) => idempotencyKey);
      sent.push({ key: request.headers.get('idempotency-key'), open });
    });
    const purchases = new Purchases(watching, store);
    const place = (): Promise<Order> => purchases.placeOrder(id('again'), ORDER);
    for (let turn = 0; turn < 2; turn++) {
      const refused = await whileNotSold(() => place().catch(caught));
      expect(isApiError(refused, 'package_unavailable')).toBe(true);
      expect(endsPurchase(refused)).toBe(true);
      expect(await store.listOpen()).toEqual([]);
    }
    // It dies after the commit, and the next process resumes it.
    const dying = new Purchases(
      clientOf(async (request) => {
        if (request.method !== 'POST') return;
        await fetch(request);
        throw new TypeError('died');
      }),
      store,
    );
    await expect(dying.placeOrder(id('again'), ORDER)).rejects.toThrow('the connection failed');
    expect(await openIds(openStore(kind))).toEqual([id('again')]);
    const [resumed] = await new Purchases(watching, openStore(kind)).resume();
    expect(resumed).toMatchObject({ error: null, result: { reference: id('again') } });
    expect((await place()).id).toBe(resumed!.result!.id);
    for (const { key, open } of sent.slice(0, 3)) expect(open).toEqual([key]);
    expect(new Set(sent.map(({ key }) => key)).size).toBe(3);
    expect((await esim.orders.list({ reference: id('again') })).data).toHaveLength(1);
  });

  it('is reopened by one of many processes, and all use the key of that process', async () => {
    const refused = await whileNotSold(() =>
      new Purchases(esim, openStore(kind)).placeOrder(id('many'), ORDER).catch(caught),
    );
    expect(endsPurchase(refused)).toBe(true);
    const keys = new Set<string | null>();
    const watching = clientOf((request) => {
      if (request.method === 'POST') keys.add(request.headers.get('idempotency-key'));
      return Promise.resolve();
    }, 10);
    const placed = await Promise.all(
      Array.from({ length: 8 }, () => new Purchases(watching, openStore(kind)).placeOrder(id('many'), ORDER)),
    );
    expect(new Set(placed.map((order) => order.id)).size).toBe(1);
    expect(keys.size).toBe(1);
    expect(await openStore(kind).listOpen()).toEqual([]);
  });

  it('stays bought when a slower process reports a refusal, which ends only its own attempt', async () => {
    const store = openStore(kind);
    const intentOf = (name: string): Intent => {
      const body = { ...ORDER, reference: id(name) };
      return { id: id(name), idempotencyKey: crypto.randomUUID(), kind: 'order', body };
    };
    const bought = await store.add(intentOf('late'));
    await store.finish(bought, { resultId: 'ord_1' });
    await store.finish(bought, { refusedWith: 'package_unavailable' });
    expect(await store.add(intentOf('late'))).toEqual(bought);
    expect(await store.listOpen()).toEqual([]);

    const first = await store.add(intentOf('slow'));
    await store.finish(first, { refusedWith: 'package_unavailable' });
    const second = await store.add(intentOf('slow'));
    expect(second.idempotencyKey).not.toBe(first.idempotencyKey);
    await store.finish(first, { refusedWith: 'package_unavailable' });
    expect(await store.listOpen()).toEqual([second]);
    await store.finish(second, { refusedWith: 'price_changed' });
    expect(await store.listOpen()).toEqual([]);
  });

  it('frees its id for another order, unlike an open or bought one', async () => {
    const purchases = new Purchases(esim, openStore(kind));
    const other = { ...ORDER, quantity: 2 };
    expect(
      endsPurchase(await whileNotSold(() => purchases.placeOrder(id('other'), ORDER).catch(caught))),
    ).toBe(true);
    expect((await purchases.placeOrder(id('other'), other)).quantity).toBe(2);
    const conflict = await purchases.placeOrder(id('other'), ORDER).catch(caught);
    expect(conflict).toBeInstanceOf(IntentConflictError);
    expect(conflict).toMatchObject({ stored: { id: id('other'), body: other } });
    // The order of fields and null fields do not make it a different purchase.
    const same = { quantity: 2, max_unit_price: null, ...ORDER };
    expect((await purchases.placeOrder(id('other'), same)).quantity).toBe(2);
  });

  it('distinguishes an order and a top-up with the same id, like the service', async () => {
    const purchases = new Purchases(esim, openStore(kind));
    const order = await esim.orders.waitFor((await purchases.placeOrder(id('both'), ORDER)).id);
    const esimId = order.esims[0]!.esim_id;
    const [item] = (await esim.esims.topupPackages(esimId)).data;
    const wanted = { esim_id: esimId, package_id: item!.id };
    const topup = await purchases.placeTopup(id('both'), wanted);
    expect(topup).toMatchObject({ esim_id: esimId, reference: id('both') });
    expect(topup.id).toMatch(/^top_/);
    expect((await purchases.placeTopup(id('both'), wanted)).id).toBe(topup.id);
    expect((await purchases.placeOrder(id('both'), ORDER)).id).toBe(order.id);
    expect(await openStore(kind).listOpen()).toEqual([]);
  });

  it('rejects an id that the service would refuse, before anything is stored', async () => {
    const store = openStore(kind);
    const wrong = new Purchases(esim, store).placeOrder('\n', ORDER);
    await expect(wrong).rejects.toThrow(TypeError);
    expect(await store.listOpen()).toEqual([]);
  });
});

describe('a purchase stored by version 0.1.0', () => {
  const intentOf = (id: string, kind: 'order' | 'topup'): Intent =>
    ({
      id,
      idempotencyKey: crypto.randomUUID(),
      kind,
      body: { package_id: PACKAGE, reference: id },
    }) as Intent;

  it('is listed and ended in SQL', async () => {
    const [order, topup] = [intentOf('old-order', 'order'), intentOf('old-topup', 'topup')];
    for (const intent of [order, topup])
      await service.database.pool.query('INSERT INTO esim_intents (id, intent) VALUES ($1, $2)', [
        intent.id,
        JSON.stringify(intent),
      ]);
    const store = openStore('sql');
    expect(await openIds(store)).toEqual(['old-order', 'old-topup']);
    expect((await store.add(intentOf('old-order', 'order'))).idempotencyKey).toBe(order.idempotencyKey);
    for (const intent of await store.listOpen()) await store.finish(intent, { resultId: 'x' });
    expect(await store.listOpen()).toEqual([]);
  });

  it('is listed and ended in files', async () => {
    const store = new FileIntentStore(path.join(folder, 'old'));
    expect(await store.listOpen()).toEqual([]);
    const [order, topup, ended] = [
      intentOf('old-order', 'order'),
      intentOf('old-topup', 'topup'),
      intentOf('old-ended', 'order'),
    ];
    const fileOf = (intent: Intent, end: string): string =>
      path.join(folder, 'old', `${Buffer.from(intent.id).toString('hex')}.${end}.json`);
    for (const intent of [order, topup]) await writeFile(fileOf(intent, 'open'), JSON.stringify(intent));
    await writeFile(
      fileOf(ended, 'ended'),
      JSON.stringify({ intent: ended, outcome: { refusedWith: 'not_found' } }),
    );
    expect(await openIds(store)).toEqual(['old-order', 'old-topup']);
    expect((await store.add(intentOf('old-order', 'order'))).idempotencyKey).toBe(order.idempotencyKey);
    expect((await store.add(intentOf('old-ended', 'order'))).idempotencyKey).not.toBe(ended.idempotencyKey);
    for (const intent of await store.listOpen()) await store.finish(intent, { resultId: 'x' });
    expect(await store.listOpen()).toEqual([]);
  });
});
