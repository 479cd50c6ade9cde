import { type ChildProcess, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FileIntentStore } from '../../sdk/src/node/file-stores.js';
import {
  EsimClient,
  isApiError,
  type IntentStore,
  Purchases,
  SQL_STORE_TABLES,
  SqlIntentStore,
} from '../../sdk/src/index.js';
import { freePort } from '../harness/free-port.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { size } from '../harness/size.js';

/** A full proof takes 200; each run of the tests, as many as take about a minute on a busy machine. */
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

/** A partner's process that buys one after the other, and is told of nothing but its own death. */
function startBuyer(name: string): ChildProcess {
  const program = `
    const { EsimClient, Purchases } = await import(${JSON.stringify(path.join(SDK, '../dist/index.js'))});
    const { FileIntentStore } = await import(${JSON.stringify(path.join(SDK, '../dist/node/file-stores.js'))});
    const esim = new EsimClient({ apiKey: process.env.KEY, baseUrl: process.env.URL });
    const purchases = new Purchases(esim, new FileIntentStore(process.env.FOLDER));
    for (let n = 0; ; n++) {
      process.stdout.write('next\\n');
      await purchases.placeOrder('${name}-' + n, { package_id: 'pkg_fr_1gb_7d' });
    }`;
  const env = {
    PATH: process.env['PATH'],
    KEY: partner.sandboxKey,
    URL: service.process.api!.url,
    FOLDER: folder,
  };
  return spawn(process.execPath, ['--input-type=module', '-e', program], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Waits until so many purchases have begun. */
async function begun(buyer: ChildProcess, purchases: number): Promise<void> {
  let lines = 0;
  for await (const [chunk] of on(buyer.stdout!, 'data') as AsyncIterable<[Buffer]>) {
    lines += chunk.toString().split('\n').length - 1;
    if (lines >= purchases) return;
  }
}

describe('a purchase whose process dies', () => {
  it(`is bought exactly once after resume(), ${KILLS} times`, async () => {
    const store = new FileIntentStore(folder);
    for (let kill = 0; kill < KILLS; kill++) {
      const buyer = startBuyer(`kill-${kill}`);
      // Anywhere in a purchase: before the intent is there, between it and the call, and after the commit.
      await begun(buyer, 2 + Math.floor(Math.random() * 3));
      await sleep(Math.random() * 25);
      buyer.kill('SIGKILL');
      await once(buyer, 'exit');
    }
    const open = await store.listOpen();
    const resumed = await new Purchases(esim, store).resume();
    expect(resumed.filter(({ error }) => error !== null)).toEqual([]);
    expect(resumed).toHaveLength(open.length);
    expect(await store.listOpen()).toEqual([]);
    const bought = await ordersOf('kill-');
    expect(new Set(bought).size).toBe(bought.length);
    const ends = await new Purchases(esim, store).resume();
    expect(ends).toEqual([]);
    expect(await ordersOf('kill-')).toEqual(bought);
    // Every intent that was stored is an order, and nothing else is one.
    for (const { intent, result } of resumed) {
      expect(bought).toContain(intent.id);
      expect(result).toMatchObject({ reference: intent.id });
    }
    console.log(`${KILLS} kills: ${open.length} purchases were open, ${bought.length} orders in all`);
    expect(open.length).toBeGreaterThan(0);
  }, 300_000);

  it.each(['file', 'sql'])(
    'is stored before the first byte leaves, and known again by its id, in %s',
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

  it('is found by its reference when the service has forgotten its key', async () => {
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

  it('ends when it is refused for good, and stays open when nobody answers', async () => {
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
