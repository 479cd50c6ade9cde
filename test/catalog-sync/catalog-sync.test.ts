import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { offer, offers } from './scripted-provider.js';

const MARGIN = { LIVE_MARGIN_BPS: '2000' };
const LISTED = 30;

let bench: CatalogBench;
let worker: SyncWorker;

beforeAll(async () => {
  bench = await CatalogBench.open();
  bench.esimAccess.packages = offers('A', LISTED);
  bench.zendit.packages = offers('Z', 12);
  worker = await bench.startWorker(MARGIN);
  expect(await worker.runIfDue(), 'the first worker does not wait').toBe(true);
});

afterAll(() => bench.close());

describe('live catalog synchronization', () => {
  it('changes nothing when the lists are unchanged: no version, no ETag, no history row', async () => {
    const [version, list] = [await bench.version(), await bench.partner.get('/v1/catalog?limit=100')];
    expect(list.body.data).toHaveLength(LISTED + 12);
    const done = await bench.sync(worker);
    expect(done).toEqual({
      status: 'completed',
      result: {
        esim_access: { listed: LISTED, changed: 0, withdrawn: 0 },
        zendit: { listed: 12, changed: 0, withdrawn: 0 },
      },
    });
    expect(await bench.version()).toBe(version);
    const again = { 'if-none-match': list.headers.get('etag')! };
    expect((await bench.partner.get('/v1/catalog?limit=100', again)).status).toBe(304);
    expect(await bench.history('pkg_a_A1')).toEqual([[1_000_000, 120, true]]);
  });

  it('changes one package when one price moved, lists it in `updated_since`, and serves a new ETag', async () => {
    const etag = (await bench.partner.get('/v1/catalog?limit=100')).headers.get('etag')!;
    const before = await bench.now();
    bench.esimAccess.change('A2', { cost: { micros: 1_500_000, currency: 'USD' } });
    expect((await bench.sync(worker)).result['esim_access']).toMatchObject({ changed: 1, withdrawn: 0 });
    const item = await bench.package('pkg_a_A2', ({ price }) => price.amount !== 120);
    expect(item).toMatchObject({ price: { amount: 180, currency: 'USD' }, available: true });
    expect(item['updated_at'] >= before, 'updated_at moved').toBe(true);
    const list = await bench.partner.get('/v1/catalog?limit=100', { 'if-none-match': etag });
    expect([list.status, list.headers.get('etag') === etag]).toEqual([200, false]);
    expect(await bench.updatedSince(before)).toEqual([['pkg_a_A2', 180, true]]);
  });

  it('keeps a package that is no longer listed, unsold, and sells it under the same id when it returns', async () => {
    const id = 'pkg_a_A3';
    const before = await bench.now();
    bench.esimAccess.drop('A3');
    expect((await bench.sync(worker)).result['esim_access']).toMatchObject({ changed: 0, withdrawn: 1 });
    await bench.package(id, ({ available }) => available === false);
    expectProblem(await order(id), 409, 'package_unavailable');
    expect(await bench.updatedSince(before)).toEqual([[id, 120, false]]);
    bench.esimAccess.packages.push(offer('A3'));
    expect((await bench.sync(worker)).result['esim_access']).toMatchObject({ changed: 1, withdrawn: 0 });
    await bench.package(id, ({ available }) => available === true);
    // It is on sale: this partner only lacks money.
    expectProblem(await order(id), 402, 'insufficient_balance');
  });

  it('writes one history row for each change of cost, price or availability', async () => {
    const id = 'pkg_a_A4';
    const cost = (micros: number) => ({ cost: { micros, currency: 'USD' } });
    const steps = [
      () => bench.esimAccess.change('A4', cost(2_000_000)),
      // One hundredth of a cent more changes the cost but not the price, which is rounded up to whole cents.
      () => bench.esimAccess.change('A4', cost(1_999_990)),
      () => bench.esimAccess.change('A4', { title: 'Another name' }),
      () => bench.esimAccess.change('A4', { available: false }),
      () => bench.esimAccess.change('A4', { available: true }),
    ];
    for (const step of steps) {
      step();
      expect((await bench.sync(worker)).result['esim_access']).toMatchObject({ changed: 1 });
    }
    expect(await bench.history(id)).toEqual([
      [1_000_000, 120, true],
      [2_000_000, 240, true],
      [1_999_990, 240, true],
      [1_999_990, 240, false],
      [1_999_990, 240, true],
    ]);
  });

  it.each([
    ['1.002 USD', 1_002_000, 121],
    ['a millionth', 1, 1],
    ['an exact sum', 1_250_000, 150],
    ['nothing', 0, 0],
  ])('adds the margin to %s and rounds up, never down', async (_, micros, price) => {
    bench.zendit.change('Z1', { cost: { micros, currency: 'USD' } });
    await bench.sync(worker);
    expect((await bench.history('pkg_z_Z1')).at(-1)).toEqual([micros, price, true]);
  });
});

describe('an implausible list', () => {
  it('is rejected when more than half of the sold packages are missing, and accepted at half', async () => {
    const full = bench.esimAccess.packages;
    const sold = await bench.available();
    const before = await bench.now();
    await bench.sync(worker);
    const lastSync = await lastSyncAfter('esim_access', before);
    const version = await bench.version();
    const refusedAfter = await bench.now();
    bench.esimAccess.packages = full.slice(0, LISTED / 2 - 1);
    expect(await bench.sync(worker)).toEqual({
      status: 'failed',
      result: { esim_access: { error: 'catalog_shrank' }, zendit: { listed: 12, changed: 0, withdrawn: 0 } },
    });
    expect([await bench.available(), await bench.version()]).toEqual([sold, version]);
    await lastSyncAfter('zendit', refusedAfter);
    expect(await lastSyncOf('esim_access'), 'the portal team sees that it is old').toBe(lastSync);
    bench.esimAccess.packages = full.slice(0, LISTED / 2);
    expect((await bench.sync(worker)).result['esim_access']).toMatchObject({ withdrawn: LISTED / 2 });
    bench.esimAccess.packages = full;
    expect((await bench.sync(worker)).result['esim_access']).toMatchObject({ changed: LISTED / 2 });
    expect(await bench.available()).toEqual(sold);
  });

  it('is accepted when a dozen packages of a short list disappear at once', async () => {
    const full = bench.zendit.packages;
    bench.zendit.packages = [];
    expect((await bench.sync(worker)).result['zendit']).toEqual({ listed: 0, changed: 0, withdrawn: 12 });
    bench.zendit.packages = full;
    await bench.sync(worker);
  });

  it('keeps the packages of a provider whose list fails, and still syncs the other provider', async () => {
    bench.esimAccess.error = new Error('503');
    bench.zendit.change('Z2', { cost: { micros: 2_000_000, currency: 'USD' } });
    const sold = await bench.available();
    expect(await bench.sync(worker)).toEqual({
      status: 'failed',
      result: {
        esim_access: { error: 'provider_unavailable' },
        zendit: { listed: 12, changed: 1, withdrawn: 0 },
      },
    });
    expect(await bench.available()).toEqual(sold);
    bench.esimAccess.error = null;
  });
});

describe('changed settings', () => {
  it('apply once, when a worker starts with them, and older workers do not revert them', async () => {
    expect(await worker.runIfDue(), 'nothing is due').toBe(false);
    const same = await bench.startWorker(MARGIN);
    expect(await same.runIfDue(), 'a restart with the same settings reads no list').toBe(false);
    const changed = await bench.startWorker({ LIVE_MARGIN_BPS: '5000' });
    expect(await changed.runIfDue(), 'a restart with others does').toBe(true);
    expect((await bench.history('pkg_a_A1')).at(-1)).toEqual([1_000_000, 150, true]);
    expect(await changed.runIfDue()).toBe(false);
    expect(await worker.runIfDue(), 'one that still has the old ones keeps quiet').toBe(false);
    // A manual sync by the old worker restores the old prices. The newest worker then corrects them.
    await bench.sync(worker);
    expect(await changed.runIfDue()).toBe(true);
    expect(await worker.runIfDue()).toBe(false);
    expect((await bench.history('pkg_a_A1')).map(([, price]) => price)).toEqual([120, 150, 120, 150]);
    const back = await bench.startWorker(MARGIN);
    expect(await back.runIfDue(), 'so does the way back').toBe(true);
  });
});

function order(packageId: string) {
  return bench.partner.post('/v1/orders', { package_id: packageId });
}

/** The time of the provider's last complete sync, as the portal team sees it. */
async function lastSyncOf(name: string): Promise<string | null> {
  const { data } = (await bench.office.admin.get('/internal/v1/providers')).body;
  return (data as Json[]).find((each) => each['name'] === name)!['last_sync_at'] as string | null;
}

/** Waits until that time is later than `time`, because the write is asynchronous. */
function lastSyncAfter(name: string, time: string): Promise<string> {
  return eventually(`the list of ${name} was read`, async () => {
    const last = await lastSyncOf(name);
    return last !== null && last > time ? last : null;
  });
}
