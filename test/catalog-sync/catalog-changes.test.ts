import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CatalogPackage, CatalogRepository } from '../../src/catalog/index.js';
import { CatalogChangesRepository, RECORDED_FIELDS } from '../../src/catalog/catalog-changes.repository.js';
import { sandboxPackages } from '../../src/catalog/sandbox/sandbox-packages.js';
import { Transactions } from '../../src/infra/database/index.js';
import type { ProviderPackage } from '../../src/providers/index.js';
import { UNSTATED_TERMS } from '../../src/catalog/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { offer, offers } from './scripted-provider.js';

/** A repeatable random number generator (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Change {
  readonly kind: 'added' | 'changed' | 'withdrawn';
  readonly package_id: string;
  readonly changed: string[];
  readonly at: string;
}

/** A partner's copy of the catalog, kept up to date with the changes alone. */
class CatalogCopy {
  private readonly packages = new Map<string, Json>();
  private cursor: string | null = null;
  private calls = 0;

  /** @param apis processes that serve the partner in turn, as behind a load balancer */
  constructor(private readonly apis: readonly HttpClient[]) {}

  /** Follows the guide: first the end of the changes, then the copy. */
  async start(): Promise<void> {
    await this.read();
    for (const item of (await this.current())!) this.packages.set(item['id'] as string, item);
  }

  /** Reads all changes after the last one read. */
  async read(limit = 100): Promise<Change[]> {
    const changes: Change[] = [];
    for (let more = true; more;) {
      const after = this.cursor === null ? '' : `&after=${this.cursor}`;
      const { body, status, text } = await this.get(`/v1/catalog/changes?limit=${limit}${after}`);
      expect(status, text).toBe(200);
      changes.push(...(body.data as Change[]));
      this.cursor = body.next_cursor as string;
      more = body.has_more as boolean;
    }
    return changes;
  }

  /** Fetches every changed package, and checks that `changed` names what differs. */
  async replay(limit?: number): Promise<Change[]> {
    const changes = await this.read(limit);
    for (const id of new Set(changes.map((change) => change.package_id))) {
      const { body, text } = await this.get(`/v1/catalog/${id}`);
      const [before, now] = [this.packages.get(id), body.data as Json];
      expect(now, text).toBeDefined();
      const ofPackage = changes.filter((change) => change.package_id === id);
      if (before)
        expect(ofPackage.flatMap(({ changed }) => changed)).toEqual(
          expect.arrayContaining(differences(before, now)),
        );
      this.packages.set(id, now);
    }
    return changes;
  }

  /** Reads until `count` changes have been listed. */
  async readSome(count: number): Promise<Change[]> {
    const changes: Change[] = [];
    await eventually(`${count} changes`, async () => {
      changes.push(...(await this.read()));
      return changes.length >= count;
    });
    return changes;
  }

  /** Replays until the copy equals today's catalog, byte for byte. Returns the number of changes. */
  async catchUp(etag: string, limit?: number): Promise<Change[]> {
    const changes: Change[] = [];
    await eventually('the copy is current', async () => {
      changes.push(...(await this.replay(limit)));
      const current = await this.current(etag);
      const copied = current?.map(({ id }) => JSON.stringify(this.packages.get(id as string)));
      return (
        current?.length === this.packages.size &&
        current.every((item, nth) => JSON.stringify(item) === copied![nth])
      );
    });
    return changes;
  }

  /** Every package; null while a page has not this version. */
  private async current(etag = 'W/"'): Promise<Json[] | null> {
    const items: Json[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body, headers } = await this.get(`/v1/catalog?limit=100${cursor && `&cursor=${cursor}`}`);
      if (!headers.get('etag')!.startsWith(etag)) return null;
      items.push(...(body.data as Json[]));
      cursor = body.next_cursor as string | null;
    }
    return items;
  }

  private get(path: string): ReturnType<HttpClient['get']> {
    return this.apis[this.calls++ % this.apis.length]!.get(path);
  }
}

/** Fields that differ, without `updated_at`. */
function differences(one: Json, other: Json): string[] {
  return Object.keys(other).filter(
    (field) => field !== 'updated_at' && JSON.stringify(one[field]) !== JSON.stringify(other[field]),
  );
}

let bench: CatalogBench;
let second: TestService;
let worker: SyncWorker;

beforeAll(async () => {
  bench = await CatalogBench.open();
  second = await startTestService({ role: 'api', database: bench.database });
  worker = await bench.startWorker();
});
afterAll(async () => {
  await second.stop();
  await bench.close();
});

/** A partner with its own copy, served by two processes. */
async function newPartner(
  mode: 'live' | 'sandbox',
): Promise<{ id: string; copy: CatalogCopy; api: HttpClient }> {
  const { id } = await bench.office.createPartner();
  const key = await bench.office.createKey(id, mode);
  const api = bench.office.partnerApi(key);
  return { id, api, copy: new CatalogCopy([api, second.partnerApi(key)]) };
}

/** The beginning of the ETags of the partner's present catalog. */
async function presentEtag(mode: 'live' | 'sandbox', partnerId: string): Promise<string> {
  const { rows } = await bench.database.pool.query<{ version: string }>(
    `SELECT v.version || coalesce('.' || l.version, '') AS version FROM catalog_versions v
     LEFT JOIN price_lists l ON v.mode = 'live' AND l.partner_id = $2 WHERE v.mode = $1`,
    [mode, partnerId],
  );
  return `W/"${mode}-${rows[0]!.version}-`;
}

async function setPrices(
  partnerId: string,
  marginBps: number | null,
  fixed: Record<string, number> = {},
): Promise<void> {
  const prices = Object.entries(fixed).map(([id, amount]) => ({
    package_id: id,
    price: { amount, currency: 'USD' },
  }));
  const answer = await bench.office.admin.call('PUT', `/internal/v1/partners/${partnerId}/price-list`, {
    body: { margin_bps: marginBps, prices },
  });
  expect(answer.status, answer.text).toBe(200);
}

const RARE: readonly Partial<ProviderPackage>[] = [
  { dataBytes: 3 * 2 ** 30, terms: { ...UNSTATED_TERMS, dataUnit: 'binary' } },
  { terms: { ...UNSTATED_TERMS, exitCountries: ['HK'], hotspot: true } },
  { terms: { ...UNSTATED_TERMS, plan: 'daily', installWithinDays: 90 } },
  { coverage: ['FR', 'DE'], regionName: 'Europe', validityDays: 30 },
  { speedPolicy: 'At most 1 Mbps.', notes: 'For phones only.' },
];

/** Changes the wholesalers' lists as a day does. */
function mutate(random: () => number): void {
  for (const provider of [bench.esimAccess, bench.zendit]) {
    const pick = (): ProviderPackage => provider.packages[Math.floor(random() * provider.packages.length)]!;
    for (let nth = 0; nth < 4; nth++)
      provider.change(pick().upstreamId, {
        cost: { micros: Math.floor(random() * 9_000_000), currency: 'USD' },
      });
    // A cost that changes no rounded price of the catalog.
    const { upstreamId, cost } = pick();
    provider.change(upstreamId, { cost: { ...cost, micros: cost.micros + 1 } });
    provider.change(pick().upstreamId, RARE[Math.floor(random() * RARE.length)]!);
    if (random() < 0.5) provider.drop(pick().upstreamId);
    if (random() < 0.5) provider.change(pick().upstreamId, { available: random() < 0.5 });
    provider.packages.push(...offers(`N${Math.floor(random() * 1e9)}`, 1));
  }
}

describe('the changes of the Live catalog', () => {
  it(
    'turn a copy into the current catalog, whatever wholesalers and price lists do',
    { timeout: 300_000 },
    async () => {
      const random = randomOf(11);
      bench.esimAccess.packages = offers('E', 60);
      bench.zendit.packages = offers('Z', 60, { coverage: ['JP'] });
      await bench.sync(worker);
      const partners = [await newPartner('live'), await newPartner('live')];
      const [, priced] = partners;
      for (const { copy } of partners) await copy.start();
      for (let day = 0; day < 6; day++) {
        mutate(random);
        const limit = [1, 7, 100][day % 3];
        if (day % 2 === 1)
          await setPrices(priced!.id, [1_500, null, 500][day >> 1]!, { pkg_a_E1: 100 + day });
        await bench.sync(worker);
        if (day % 2 === 1)
          await setPrices(priced!.id, [1_600, 900, null][day >> 1]!, { pkg_a_E2: 100 + day });
        for (const { copy, id } of partners) {
          const changes = await copy.catchUp(await presentEtag('live', id), limit);
          expect(changes.length).toBeGreaterThan(5);
          expect(changes.map(({ at }) => at)).toEqual(changes.map(({ at }) => at).toSorted());
        }
      }
    },
  );

  it('names exactly the changed fields, and what happened to the package', async () => {
    bench.esimAccess.packages.push(...offers('X', 3));
    await bench.sync(worker);
    const { copy, id } = await newPartner('live');
    const listed = await newPartner('live');
    await setPrices(listed.id, 1_000, { pkg_a_X2: 777 });
    for (const each of [{ copy, id }, listed]) {
      await each.copy.start();
      await each.copy.catchUp(await presentEtag('live', each.id));
    }
    bench.esimAccess.change('X1', { cost: { micros: 1_000_001, currency: 'USD' } });
    bench.esimAccess.change('X2', { cost: { micros: 2_000_000, currency: 'USD' }, title: 'X2 anew' });
    bench.esimAccess.drop('X3');
    bench.esimAccess.packages.push(offer('X4'));
    await bench.sync(worker);
    const seen = async (from: CatalogCopy, count: number): Promise<Record<string, unknown>> =>
      Object.fromEntries(
        (await from.readSome(count)).map(({ kind, package_id, changed }) => [
          package_id,
          [kind, ...changed.toSorted()],
        ]),
      );
    expect(await seen(copy, 4)).toEqual({
      pkg_a_X1: ['changed', 'price'],
      pkg_a_X2: ['changed', 'price', 'title'],
      pkg_a_X3: ['withdrawn', 'available'],
      pkg_a_X4: ['added'],
    });
    // The cost decides the price by margin, and a fixed price stays.
    expect(await seen(listed.copy, 4)).toEqual({
      pkg_a_X1: ['changed', 'price'],
      pkg_a_X2: ['changed', 'title'],
      pkg_a_X3: ['withdrawn', 'available'],
      pkg_a_X4: ['added'],
    });
    bench.esimAccess.packages.push(offer('X3'));
    await bench.sync(worker);
    expect(await seen(copy, 1)).toEqual({ pkg_a_X3: ['changed', 'available'] });
    await setPrices(listed.id, 900);
    expect(Object.keys(await seen(listed.copy, 20))).toContain('pkg_a_X1');
    expect(await copy.read(), `nothing changed for ${id}`).toEqual([]);
  });

  it('can name every field of a package that may change', async () => {
    const { api } = await newPartner('sandbox');
    const fields = Object.keys((await api.get('/v1/catalog/pkg_fr_1gb_7d')).body.data as Json);
    const fixed = ['id', 'requirements', 'updated_at'];
    expect([...RECORDED_FIELDS, ...fixed].toSorted()).toEqual([...fields, 'cost'].toSorted());
  });
});

describe('the changes of the Sandbox catalog', () => {
  const [sample] = sandboxPackages();

  async function upsert(packages: readonly CatalogPackage[], waitMs = 0): Promise<void> {
    const { nest } = bench.office.process.admin!;
    await nest.get(Transactions, { strict: false }).run(async (tx) => {
      await nest.get(CatalogRepository, { strict: false }).upsert(tx, 'sandbox', packages);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    });
  }

  it('hide no transaction that commits late, however many write at once', { timeout: 120_000 }, async () => {
    const random = randomOf(5);
    const { copy, id } = await newPartner('sandbox');
    await copy.start();
    const write = async (writer: number): Promise<void> => {
      for (let nth = 0; nth < 12; nth++) {
        const shared = `pkg_w_${Math.floor(random() * 12)}`;
        await upsert(
          [
            { ...sample!, id: shared, title: `${writer}.${nth}` },
            { ...sample!, id: `pkg_w_${writer}_${nth}` },
          ],
          random() * 60,
        );
      }
    };
    let writing = true;
    const writers = Promise.all([1, 2, 3, 4].map(write)).finally(() => (writing = false));
    while (writing) await copy.replay(5);
    await writers;
    await copy.catchUp(await presentEtag('sandbox', id));
  });

  it('are kept for 30 days, and an older cursor is refused with the way out', async () => {
    const { api } = await newPartner('sandbox');
    const log = bench.office.process.api!.nest.get(CatalogChangesRepository, { strict: false });
    const first = await api.get('/v1/catalog/changes?limit=1');
    await bench.database.pool.query(
      `UPDATE catalog_changes SET at = now() - interval '31 days' WHERE mode = 'sandbox'`,
    );
    await upsert([{ ...sample!, title: 'young' }]);
    let purged = 0;
    for (let step = 1; step > 0; purged += step) step = await log.purge(30, 100);
    expect(purged).toBeGreaterThan(900);
    const refused = await api.get(`/v1/catalog/changes?after=${first.body.next_cursor}`);
    expectProblem(refused, 400, 'invalid_cursor');
    expect(refused.body.detail).toContain('Copy GET /v1/catalog again');
    const kept = new CatalogCopy([api]);
    expect(await kept.readSome(1)).toMatchObject([
      { package_id: sample!.id, kind: 'changed', changed: ['title'] },
    ]);
    await bench.database.pool.query(`UPDATE catalog_changes SET at = now() - interval '31 days'`);
    await log.purge(30, 100);
    expect(await kept.read()).toEqual([]);
    expect(await new CatalogCopy([api]).read()).toEqual([]);
  });

  it('begin anew after a restore, which refuses older cursors', async () => {
    const { api } = await newPartner('sandbox');
    const cursor = (await api.get('/v1/catalog/changes')).body.next_cursor as string;
    const { nest } = bench.office.process.admin!;
    const log = nest.get(CatalogChangesRepository, { strict: false });
    await nest.get(Transactions, { strict: false }).run((tx) => log.restart(tx));
    expectProblem(await api.get(`/v1/catalog/changes?after=${cursor}`), 400, 'invalid_cursor');
    await upsert([{ ...sample!, title: 'after the restore' }]);
    expect(await new CatalogCopy([api]).readSome(1)).toMatchObject([
      { package_id: sample!.id, changed: ['title'] },
    ]);
  });

  it('belong to a partner and a mode', async () => {
    const [one, other] = [await newPartner('sandbox'), await newPartner('sandbox')];
    const cursor = (await one.api.get('/v1/catalog/changes')).body.next_cursor as string;
    for (const path of [
      `/v1/catalog/changes?after=${cursor}`,
      '/v1/catalog/changes?after=x',
      `/v1/events?after=${cursor}`,
    ])
      expectProblem(await other.api.get(path), 400, 'invalid_cursor');
    expectProblem(
      await one.api.get(`/v1/catalog/changes?after=${cursor}&cursor=${cursor}`),
      400,
      'validation_failed',
    );
  });
});
