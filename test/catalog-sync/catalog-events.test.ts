import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EventRecorder } from '../../src/events/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { offer, offers } from './scripted-provider.js';

let bench: CatalogBench;
let worker: SyncWorker;
beforeAll(async () => {
  bench = await CatalogBench.open();
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.startAfresh();
  await bench.database.pool.query(`DELETE FROM events WHERE type = 'catalog.changed'`);
  worker = await bench.startWorker();
});

const announced = async (): Promise<Json[]> =>
  (await readFeed(bench.partner))
    .filter(({ type }) => type === 'catalog.changed')
    .map(({ data }) => data as Json);

/** Partners by their number of events. */
async function eventsPerPartner(): Promise<Record<number, number>> {
  const { rows } = await bench.database.pool.query<{ events: number; partners: number }>(
    `SELECT events, count(*)::int AS partners FROM (
       SELECT p.id, count(e.id)::int AS events FROM partners p
       LEFT JOIN events e ON e.partner_id = p.id AND e.type = 'catalog.changed'
       WHERE p.status = 'active' GROUP BY p.id) AS counted GROUP BY events`,
  );
  return Object.fromEntries(rows.map(({ events, partners }) => [events, partners]));
}

describe('catalog.changed', () => {
  it('reports what one synchronization changed, and lists it under its URL', async () => {
    bench.esimAccess.packages = offers('A', 3);
    bench.zendit.packages = [offer('Z')];
    await bench.sync(worker);
    await worker.announce();
    const [first, ...others] = await announced();
    expect(others).toEqual([]);
    expect(first).toMatchObject({ changed: 0, withdrawn: 0 });
    const added = first!['added'] as number;
    expect(added).toBe((await bench.available()).length);

    const [one] = bench.esimAccess.packages;
    bench.esimAccess.change(one!.upstreamId, { validityDays: 8 });
    bench.esimAccess.drop(bench.esimAccess.packages[2]!.upstreamId);
    await bench.sync(worker);
    await worker.announce();
    const second = (await announced())[1]!;
    expect(second).toMatchObject({ added: 0 });
    const { data } = (await bench.partner.get(second['changes_url'] as string)).body;
    const kinds = (data as { kind: string }[]).map(({ kind }) => kind);
    for (const kind of ['added', 'changed', 'withdrawn'])
      expect(kinds.filter((each) => each === kind).length, kind).toBe(second[kind]);
    expect(second['withdrawn']).toBeGreaterThan(0);
  });

  it('is not sent without a change', async () => {
    bench.esimAccess.packages = [offer('A')];
    for (let run = 0; run < 3; run++) {
      await bench.sync(worker);
      await worker.announce();
    }
    expect(await announced()).toHaveLength(1);
  });

  it('includes changes between two synchronizations in the later one', async () => {
    bench.esimAccess.packages = [offer('A')];
    await bench.sync(worker);
    await worker.announce();
    await bench.database.pool.query(
      `WITH next AS (UPDATE catalog_versions SET position = position + 1 WHERE mode = 'live' RETURNING position)
       INSERT INTO catalog_changes (mode, position, at, package_id, kind, changed)
       SELECT 'live', position, now(), 'pkg_a_A', 'changed', '{notes}' FROM next`,
    );
    await bench.sync(worker);
    await worker.announce();
    expect((await announced())[1]).toMatchObject({ added: 0, changed: 1, withdrawn: 0 });
  });

  it('reaches a thousand partners exactly once, although workers fail in between and work side by side', async () => {
    await bench.database.pool.query(
      `INSERT INTO partners (id, name, status)
       SELECT 'ptn_many_' || lpad(n::text, 4, '0'), 'Many', CASE WHEN n % 10 = 0 THEN 'suspended' ELSE 'active' END
       FROM generate_series(1, 1000) AS n`,
    );
    bench.esimAccess.packages = [offer('A')];
    await bench.sync(worker);
    let calls = 0;
    const recorder = worker.get(EventRecorder);
    const record = recorder.record.bind(recorder);
    recorder.record = async (tx, events) => {
      await record(tx, events);
      // Fails before the commit, in two of three batches.
      if (calls++ % 3 !== 2) throw new Error('the worker died');
    };
    const other = await bench.startWorker();
    for (let attempt = 0; attempt < 6; attempt++) await worker.announce().catch(() => undefined);
    expect(await eventsPerPartner()).not.toEqual({});
    await Promise.all([other.announce(), other.announce(), worker.announce().catch(() => undefined)]);
    await other.announce();
    expect(Object.keys(await eventsPerPartner())).toEqual(['1']);
  });
});
