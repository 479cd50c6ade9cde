import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  ProviderOutcomeUnknown,
  type ProviderPackage,
  ProviderUnavailable,
} from '../../src/providers/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually } from '../harness/index.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { offer, ScriptedProvider } from './scripted-provider.js';

/** Lists base packages, and returns the matching top-ups when queried for one of them. */
class ScriptedFits extends ScriptedProvider {
  fits: Record<string, readonly string[]> = {};
  trouble: Error | null = null;
  /** The top-up whose title PostgreSQL cannot store. */
  refused: string | null = null;
  readonly asked: string[] = [];

  override asLiveProvider() {
    const listTopupsFor = (base: string): Promise<readonly ProviderPackage[]> => {
      this.asked.push(base);
      if (this.trouble) return Promise.reject(this.trouble);
      const topups = (this.fits[base] ?? []).map((id) => {
        const title = id === this.refused ? 'NUL \u0000' : `Top-up ${id}`;
        return offer(id, { kind: 'topup', coverage: ['DE', 'FR'], title });
      });
      return Promise.resolve(topups);
    };
    return { ...super.asLiveProvider(), listTopupsFor };
  }
}

let bench: CatalogBench;
let upstream: ScriptedFits;
let worker: SyncWorker;
let esimId: string;

beforeAll(async () => {
  bench = await CatalogBench.open();
  esimId = await liveEsimOf('pkg_a_A');
});
beforeEach(async () => {
  await bench.startAfresh();
  upstream = new ScriptedFits('esim_access');
  upstream.packages = [offer('A'), offer('B'), offer('N', { topupSupported: false })];
  upstream.fits = { A: ['T1', 'T2'], B: ['T2'] };
  worker = await bench.startWorker({}, [upstream.asLiveProvider()]);
  await worker.runIfDue();
  await bench.package('pkg_a_A', ({ available }) => available === true);
});
afterAll(() => bench.close());

/** Creates a live eSIM that was sold with this package. */
async function liveEsimOf(packageId: string): Promise<string> {
  const sandbox = bench.office.partnerApi(await bench.office.createKey(bench.partnerId, 'sandbox'));
  const { id } = await placeOrder(sandbox, { package_id: 'pkg_fr_1gb_7d' });
  await orderEnded(sandbox, id as string);
  const rows = await copyToLive(bench.database, await rowsOf(bench.database, id as string));
  await bench.database.pool.query(
    `UPDATE esims SET package_id = $2, provider = 'esim_access', status = 'active' WHERE id = $1`,
    [rows.esimId, packageId],
  );
  return rows.esimId;
}

async function fitting(): Promise<string[]> {
  const answer = await bench.partner.get(`/v1/esims/${esimId}/topup-packages`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data.map(({ id }: { id: string }) => id).sort();
}

/** Waits, because the API caches the catalog for a second. */
const fittingIs = (ids: readonly string[]) =>
  eventually(`${ids.join(' and ')} fit`, async () => (await fitting()).join() === ids.join());

async function hoursLater(hours: number): Promise<void> {
  await bench.database.pool.query(
    `UPDATE package_sources SET topups_asked_at = topups_asked_at - make_interval(hours => $1),
       topups_not_before = topups_not_before - make_interval(hours => $1)`,
    [hours],
  );
}

it("lists no top-ups before the provider was queried, and exactly the provider's list afterwards", async () => {
  expect(await fitting()).toEqual([]);
  expect(await worker.askTopups()).toBe(2);
  expect(upstream.asked, 'the one that somebody waits for first').toEqual(['A', 'B']);
  await fittingIs(['pkg_a_topup_T1', 'pkg_a_topup_T2']);
  expect(await worker.askTopups(), 'nothing is asked twice').toBe(0);
});

it('sells only the top-ups that the provider listed for the package, and refuses others', async () => {
  upstream.fits = { A: ['T1'], B: ['T2'] };
  await worker.askTopups();
  const place = (id: string) => bench.partner.post('/v1/topups', { esim_id: esimId, package_id: id });
  expectProblem(await place('pkg_a_topup_T2'), 409, 'topup_not_supported');
  // It fits: this partner only lacks money.
  expectProblem(await place('pkg_a_topup_T1'), 402, 'insufficient_balance');
});

it('queries again after a day, stops selling top-ups that fit nothing, and loses nothing to a failed query', async () => {
  await worker.askTopups();
  await fittingIs(['pkg_a_topup_T1', 'pkg_a_topup_T2']);
  upstream.fits = { A: ['T1'], B: [] };
  await hoursLater(23);
  expect(await worker.askTopups()).toBe(0);
  await hoursLater(2);
  upstream.trouble = new ProviderOutcomeUnknown();
  expect(await worker.askTopups(), 'each was asked, once').toBe(2);
  expect(await worker.askTopups(), 'and is left alone for a while').toBe(0);
  await fittingIs(['pkg_a_topup_T1', 'pkg_a_topup_T2']);
  upstream.trouble = null;
  await hoursLater(1);
  expect(await worker.askTopups()).toBe(2);
  await fittingIs(['pkg_a_topup_T1']);
  expect(await bench.available()).toEqual(['pkg_a_A', 'pkg_a_B', 'pkg_a_N', 'pkg_a_topup_T1']);
});

it('stops querying while the provider is busy, and queries an unsold package once somebody needs it', async () => {
  upstream.trouble = new ProviderUnavailable(0);
  expect(await worker.askTopups()).toBe(0);
  expect(upstream.asked, 'the first refusal is enough').toHaveLength(1);
  upstream.trouble = null;
  upstream.packages = [offer('B')];
  await bench.sync(worker);
  await bench.package('pkg_a_A', ({ available }) => available === false);
  expect(await worker.askTopups()).toBe(1);
  expect(upstream.asked.at(-1)).toBe('B');
  expect(await fitting()).toEqual([]);
  expect(await worker.askTopups()).toBe(1);
  await fittingIs(['pkg_a_topup_T1', 'pkg_a_topup_T2']);
});

it('sells the other top-ups of a package when PostgreSQL rejects one (D43)', async () => {
  upstream.refused = 'T1';
  expect(await worker.askTopups()).toBe(2);
  await fittingIs(['pkg_a_topup_T2']);
  // If every top-up of a package is rejected, its result is ignored.
  upstream.fits = { A: ['T1'], B: ['T2'] };
  await hoursLater(25);
  await worker.askTopups();
  expect(await bench.available()).toContain('pkg_a_topup_T2');
  await fittingIs(['pkg_a_topup_T2']);
  upstream.fits = { A: ['T1', 'T2'], B: ['T2'] };
  upstream.refused = null;
  await hoursLater(25);
  await worker.askTopups();
  await fittingIs(['pkg_a_topup_T1', 'pkg_a_topup_T2']);
});
