import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Mode } from '../../src/common/mode.js';
import { newId } from '../../src/common/ids.js';
import { ProviderRegistry, type ProviderTopupState } from '../../src/providers/index.js';
import { FindOrPlace } from '../../src/purchases/index.js';
import { TopupEntity, TopupJobsRepository } from '../../src/topups/index.js';
import { createTestDatabase, eventually, startTestService, type TestDatabase } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { type ScriptedWorker, ScriptedUpstream, startWorkerWith } from './scripted-upstream.js';
import { GB, TOPUP_1GB_7D } from './topup-steps.js';

const DONE: ProviderTopupState = { state: 'completed', totalBytes: null, expiresAt: null };
/** The session's own, which was how long everybody waited. */
const LOCK_TIMEOUT_MS = 5_000;

const upstream = new ScriptedUpstream();
let database: TestDatabase;
let worker: ScriptedWorker;
let esimId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  const [office, front] = await Promise.all([
    startTestService({ role: 'admin', database }),
    startTestService({ role: 'api', database }),
  ]);
  worker = await startWorkerWith(upstream, database);
  esimId = await new EsimDevice(front.partnerApi((await office.createPartner()).sandboxKey)).activeEsim();
  await Promise.all([front.stop(), office.stop()]);
});

afterAll(async () => {
  await worker.stop();
  await database.drop();
});

afterEach(() => vi.restoreAllMocks());

/** A top-up that a worker has just claimed. */
async function claimed(mode: Mode): Promise<{ id: string; reference: string }> {
  const [id, reference] = [newId('top'), randomUUID()];
  await database.pool.query(
    `INSERT INTO topups (id, partner_id, mode, status, esim_id, iccid, package_id, price_amount, currency,
       data_added_bytes, validity_added_days, provider, provider_reference, upstream_package_id, accepted_request_id,
       fence, next_attempt_at, lease_until)
     SELECT $1, partner_id, $3, 'processing', id, iccid, $4, 100, 'USD', $5, 7, $6, $7, 'UP-1', 'req_test', 1, now(),
       now() + interval '1 hour' FROM esims WHERE id = $2`,
    [id, esimId, mode, TOPUP_1GB_7D, GB, upstream.name, reference],
  );
  upstream.script(reference, [() => Promise.resolve(DONE)]);
  return { id, reference };
}

/** All of these top-ups are about to be placed in the same turn of the event loop. */
async function place(ids: readonly string[]): Promise<readonly Promise<ProviderTopupState | null>[]> {
  const { manager } = worker.app.get(DataSource, { strict: false });
  const topups = await Promise.all(ids.map((id) => manager.findOneByOrFail(TopupEntity, { id })));
  const providers = worker.app.get(ProviderRegistry, { strict: false });
  const provider = new FindOrPlace(providers, worker.app.get(TopupJobsRepository, { strict: false }));
  return topups.map((purchase) => {
    const { id, providerReference: reference } = purchase;
    const claim = { neverPlaced: true, firstPlacement: null, sendWindowStart: 0, claimedIn: null };
    return provider.findOrPlace<ProviderTopupState>(
      { id, fence: 1, purchase, ...claim },
      {
        find: () => Promise.resolve(null),
        place: () => upstream.placeTopup({ reference } as never, 'first'),
      },
    );
  });
}

/** Support, say, has the row locked for as long as `work` takes. */
async function whileLocked(id: string, work: () => Promise<void>): Promise<void> {
  const support = await database.pool.connect();
  try {
    await support.query('BEGIN');
    await support.query('SELECT 1 FROM topups WHERE id = $1 FOR UPDATE', [id]);
    await work();
  } finally {
    await support.query('ROLLBACK');
    support.release();
  }
}

describe('the notes of placements that are about to be sent', () => {
  it('of Live are written without those of Sandbox, whose rows somebody holds (D41)', async () => {
    const sandbox = await claimed('sandbox');
    const live = [await claimed('live'), await claimed('live')];
    const written = vi.spyOn(worker.app.get(TopupJobsRepository, { strict: false }), 'markPlaced');
    let placed: readonly Promise<ProviderTopupState | null>[] = [];
    await whileLocked(sandbox.id, async () => {
      placed = await place([sandbox.id, ...live.map(({ id }) => id)]);
      expect(await Promise.all(placed.slice(1))).toEqual([DONE, DONE]);
      expect(upstream.callsFor(sandbox.reference)).toEqual([]);
    });
    expect(await placed[0]).toEqual(DONE);
    const batches = written.mock.calls.map(([notes]) => notes.map(({ lease }) => lease.id));
    expect(batches.slice(0, 2)).toEqual([[sandbox.id], live.map(({ id }) => id)]);
  });

  it('wait half a second for a row that somebody holds, and the rest are written without it (D43)', async () => {
    const [held, ...others] = [await claimed('live'), await claimed('live'), await claimed('live')];
    let placed: readonly Promise<ProviderTopupState | null>[] = [];
    await whileLocked(held.id, async () => {
      placed = await place([held.id, ...others.map(({ id }) => id)]);
      await eventually(
        'the others are sent',
        () => others.every(({ reference }) => upstream.callsFor(reference).length === 1),
        LOCK_TIMEOUT_MS - 1_000,
      );
      expect(upstream.callsFor(held.reference)).toEqual([]);
    });
    expect(await Promise.all(placed)).toEqual([DONE, DONE, DONE]);
    expect(upstream.callsFor(held.reference)).toHaveLength(1);
  });
});
