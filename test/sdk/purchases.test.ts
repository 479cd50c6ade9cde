import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FileIntentStore } from '../../sdk/src/node/file-stores.js';
import {
  EsimClient,
  type Intent,
  isApiError,
  type IntentStore,
  Purchases,
  SQL_STORE_TABLES,
  SqlIntentStore,
} from '../../sdk/src/index.js';
import { freePort } from '../../chaos/free-port.js';
import {
  eventually,
  PATIENCE_MS,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { size } from '../harness/size.js';
import { type AnsweredCall, startFaultProxy } from './fault-proxy.js';

/** A full proof takes 200. A normal run takes about a minute on a busy machine. */
const KILLS = size('SDK_KILLS', 5, 200);
const SDK = path.resolve(import.meta.dirname, '../../sdk/src');

let service: TestService;
let partner: TestPartner;
let folder: string;
let esim: EsimClient;
beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  folder = await mkdtemp(path.join(tmpdir(), 'intents-'));
  esim = new EsimClient({ apiKey: partner.sandboxKey, baseUrl: service.process.api!.url });
});
afterAll(async () => {
  await service.stop();
  await rm(folder, { recursive: true });
});

async function ordersOf(prefix: string): Promise<string[]> {
  const { rows } = await service.database.pool.query<{ reference: string }>(
    'SELECT reference FROM orders WHERE partner_id = $1 AND reference LIKE $2 ORDER BY reference',
    [partner.id, `${prefix}%`],
  );
  return rows.map(({ reference }) => reference);
}

function sqlStore(): IntentStore {
  return new SqlIntentStore(async (text, parameters) => {
    const { rows } = await service.database.pool.query<Record<string, unknown>>(text, [...parameters]);
    return rows;
  });
}

/** A partner's process that buys in a loop until it is killed. */
function startBuyer(name: string, url: string): ChildProcess {
  const program = `
    const { EsimClient, Purchases } = await import(${JSON.stringify(path.join(SDK, '../dist/index.js'))});
    const { FileIntentStore } = await import(${JSON.stringify(path.join(SDK, '../dist/node/file-stores.js'))});
    const esim = new EsimClient({ apiKey: process.env.KEY, baseUrl: process.env.URL });
    const purchases = new Purchases(esim, new FileIntentStore(process.env.FOLDER));
    for (let n = 0; ; n++) {
      process.stdout.write('next\\n');
      await purchases.placeOrder('${name}-' + n, { package_id: 'pkg_fr_1gb_7d' });
    }`;
  const env = { PATH: process.env['PATH'], KEY: partner.sandboxKey, URL: url, FOLDER: folder };
  return spawn(process.execPath, ['--input-type=module', '-e', program], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** The references of all stored intents, open or ended. */
async function storedReferences(): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.open.json'));
  const texts = await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')));
  return texts.map((text) => (JSON.parse(text) as Intent).id).sort();
}

/** Counts of this partner's purchases at the provider and of its orders. */
async function boughtUpstream(): Promise<{ purchases: number; orders: number; unfinished: number }> {
  const { rows } = await service.database.pool.query<{
    purchases: number;
    orders: number;
    unfinished: number;
  }>(
    `SELECT (SELECT count(*)::int FROM sandbox_upstream_orders) AS purchases, count(*)::int AS orders,
       count(*) FILTER (WHERE status <> 'issued')::int AS unfinished
     FROM orders WHERE partner_id = $1`,
    [partner.id],
  );
  return rows[0]!;
}

/** Waits until this many purchases have begun. */
async function begun(buyer: ChildProcess, purchases: number): Promise<void> {
  let lines = 0;
  for await (const [chunk] of on(buyer.stdout!, 'data') as AsyncIterable<[Buffer]>) {
    lines += chunk.toString().split('\n').length - 1;
    if (lines >= purchases) return;
  }
}

describe('a purchase whose process dies', () => {
  it(
    `is bought exactly once after resume(), ${KILLS} times`,
    async () => {
      const store = new FileIntentStore(folder);
      /** Keys of all calls that reached the service, by reference, from the killed buyer and from `resume`. */
      const keys = new Map<string, Set<string | null>>();
      let beforeAnswer: (() => Promise<void>) | null = null;
      let betweenPostAndAnswer = 0;
      const answered = async ({ method, idempotencyKey, body }: AnsweredCall): Promise<void> => {
        if (method !== 'POST') return;
        const { reference } = JSON.parse(body) as { reference: string };
        keys.set(reference, (keys.get(reference) ?? new Set()).add(idempotencyKey));
        await beforeAnswer?.();
      };
      const proxy = await startFaultProxy(service.process.api!.url, () => 'none', { answered });
      for (let kill = 0; kill < KILLS; kill++) {
        const buyer = startBuyer(`kill-${kill}`, proxy.url);
        const exit = once(buyer, 'exit');
        if (kill % 2 === 0) {
          // Kill it after the commit and before the response, when only the intent knows about the order.
          let calls = 1 + Math.floor(Math.random() * 3);
          beforeAnswer = async () => {
            if (--calls > 0) return;
            beforeAnswer = null;
            buyer.kill('SIGKILL');
            await exit;
            betweenPostAndAnswer++;
          };
          await exit;
        } else {
          // Kill it anywhere in a purchase: before the intent, between it and the call, or after the commit.
          await begun(buyer, 2 + Math.floor(Math.random() * 3));
          await sleep(Math.random() * 25);
          buyer.kill('SIGKILL');
          await exit;
        }
      }
      const open = await store.listOpen();
      const stored = await storedReferences();
      const viaProxy = new EsimClient({ apiKey: partner.sandboxKey, baseUrl: proxy.url });
      const resumed = await new Purchases(viaProxy, store).resume();
      expect(resumed.filter(({ error }) => error !== null)).toEqual([]);
      expect(resumed.map(({ intent }) => intent.id).sort()).toEqual(open.map(({ id }) => id).sort());
      expect(await store.listOpen()).toEqual([]);
      expect(await new Purchases(viaProxy, store).resume()).toEqual([]);
      await proxy.close();
      // Every stored intent led to one order, whether or not its process lived to see it, and there are no other
      // orders.
      expect(await ordersOf('kill-')).toEqual(stored);
      // Count all orders of the partner, because a purchase that lost its reference would be an extra one.
      await eventually('all orders are issued', async () => (await boughtUpstream()).unfinished === 0);
      expect(await boughtUpstream()).toMatchObject({ purchases: stored.length, orders: stored.length });
      // The key alone prevents duplicates, not only the reference, which is unique in the database.
      for (const reference of stored) expect(keys.get(reference)?.size, reference).toBe(1);
      console.log(
        `${KILLS} kills, ${betweenPostAndAnswer} of them between the POST and its answer: ` +
          `${open.length} purchases were open, ${stored.length} orders in all`,
      );
      expect(betweenPostAndAnswer).toBe(Math.ceil(KILLS / 2));
      expect(open.length).toBeGreaterThanOrEqual(betweenPostAndAnswer);
    },
    PATIENCE_MS + 60_000 + KILLS * 5_000,
  );

  it.each(['file', 'sql'])(
    'is stored before the first byte is sent, and recognized by its id, in %s',
    async (kind) => {
      await service.database.pool.query(SQL_STORE_TABLES);
      const store = kind === 'file' ? new FileIntentStore(path.join(folder, 'one')) : sqlStore();
      const seen: number[] = [];
      const watching = new EsimClient({
        apiKey: partner.sandboxKey,
        baseUrl: service.process.api!.url,
        fetch: async (...call) => {
          seen.push((await store.listOpen()).length);
          return fetch(...call);
        },
      });
      const purchases = new Purchases(watching, store);
      const first = await purchases.placeOrder(`once-${kind}`, { package_id: 'pkg_fr_1gb_7d' });
      expect(seen).toEqual([1]);
      expect(first.reference).toBe(`once-${kind}`);
      expect((await purchases.placeOrder(`once-${kind}`, { package_id: 'pkg_fr_1gb_7d' })).id).toBe(first.id);
      expect(await store.listOpen()).toEqual([]);
      expect(await ordersOf(`once-${kind}`)).toHaveLength(1);
    },
  );

  it('is found by its reference after the service has dropped its key', async () => {
    const store = new FileIntentStore(path.join(folder, 'late'));
    const intent = { id: 'late-1', idempotencyKey: crypto.randomUUID(), kind: 'order' } as const;
    const body = { package_id: 'pkg_fr_1gb_7d', reference: 'late-1' };
    const bought = await esim.orders.place(body, { idempotencyKey: intent.idempotencyKey });
    await store.add({ ...intent, body });
    await service.database.pool.query('DELETE FROM idempotency_keys');
    const [resumed] = await new Purchases(esim, store).resume();
    expect(resumed).toMatchObject({ error: null, result: { id: bought.id } });
    expect(await ordersOf('late-')).toHaveLength(1);
  });

  it('ends on a permanent refusal, and stays open when nothing responds', async () => {
    const store = new FileIntentStore(path.join(folder, 'refused'));
    const refused = new Purchases(esim, store).placeOrder('refused-1', { package_id: 'pkg_nobody' });
    expect(isApiError(await refused.catch((thrown: unknown) => thrown), 'not_found')).toBe(true);
    expect(await store.listOpen()).toEqual([]);
    const away = new EsimClient({
      apiKey: partner.sandboxKey,
      baseUrl: `http://127.0.0.1:${await freePort()}`,
      maxTries: 1,
    });
    const lost = new Purchases(away, store).placeOrder('away-1', { package_id: 'pkg_fr_1gb_7d' });
    await expect(lost).rejects.toThrow('the connection failed');
    expect(await store.listOpen()).toMatchObject([{ id: 'away-1' }]);
    expect(await new Purchases(esim, store).resume()).toMatchObject([{ error: null }]);
    expect(await ordersOf('away-')).toHaveLength(1);
  });
});
