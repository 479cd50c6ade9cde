import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { newId } from '../../src/common/ids.js';
import type { Mode } from '../../src/common/mode.js';
import {
  ProviderOutcomeUnknown,
  ProviderRegistry,
  type ProviderTopupState,
  ProviderUnavailable,
} from '../../src/providers/index.js';
import { FindOrPlace } from '../../src/purchases/index.js';
import { TopupEntity, TopupJobsRepository } from '../../src/topups/index.js';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { type ScriptedWorker, ScriptedUpstream, startWorkerWith } from './scripted-upstream.js';
import { DAY_MS, GB, TOPUP_1GB_7D, topupEnded } from './topup-steps.js';

/** The session's lock timeout, which every batch would otherwise wait for. */
const LOCK_TIMEOUT_MS = 5_000;

const upstream = new ScriptedUpstream();
let esimId: string;
let database: TestDatabase;
let office: TestService;
let front: TestService;
let worker: ScriptedWorker;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  database = await createTestDatabase();
  [office, front] = await Promise.all([
    startTestService({ role: 'admin', database }),
    startTestService({ role: 'api', database }),
  ]);
  worker = await startWorkerWith(upstream, database);
  api = front.partnerApi((await office.createPartner()).sandboxKey);
  device = new EsimDevice(api);
});

afterAll(async () => {
  await worker.stop();
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

interface Given {
  readonly id: string;
  readonly esimId: string;
  readonly reference: string;
}

/** An accepted top-up of 1 GB and 7 days for an active eSIM, to be bought from the scripted provider. */
async function givenTopup(dueInMs = 0, esim?: string): Promise<Given> {
  const esimId = esim ?? (await device.activeEsim());
  const [id, reference] = [newId('top'), randomUUID()];
  await database.pool.query(
    `INSERT INTO topups (id, partner_id, mode, status, esim_id, iccid, package_id, price_amount, currency,
       data_added_bytes, validity_added_days, provider, provider_reference, upstream_package_id, accepted_request_id,
       next_attempt_at)
     SELECT $1, partner_id, mode, 'pending', id, iccid, $3, 100, 'USD', $4, 7, $5, $6, 'UP-1', 'req_test',
       now() + $7 * interval '1 millisecond' FROM esims WHERE id = $2`,
    [id, esimId, TOPUP_1GB_7D, GB, upstream.name, reference, dueInMs],
  );
  return { id, esimId, reference };
}

/** Sets the script before making the top-up due, so that the worker cannot claim it too early. */
async function run(
  { id, reference }: Given,
  answers: Parameters<ScriptedUpstream['script']>[1],
): Promise<Json> {
  upstream.script(reference, answers);
  await database.pool.query('UPDATE topups SET next_attempt_at = now() WHERE id = $1', [id]);
  const topup = await topupEnded(api, id);
  const events = (await readFeed(api)).filter((event) => event['data'].topup_id === id);
  expect(events.map((event) => event['type'])).toEqual([`order.topup.${topup['status'] as string}`]);
  return topup;
}

const DONE: ProviderTopupState = { state: 'completed', totalBytes: null, expiresAt: null };
const done = (): Promise<ProviderTopupState> => Promise.resolve(DONE);
const silence = (): Promise<never> => Promise.reject(new ProviderOutcomeUnknown());
const busy = (): Promise<never> => Promise.reject(new ProviderUnavailable(10));
const FAR_MS = 3_600_000;

/** Reports the top-up as unknown until the worker places it again, and then as in progress. */
const denialsOf = (topup: Given) => {
  const working: ProviderTopupState = { state: 'in_progress', checkAfterMs: 50 };
  return Array.from(
    { length: 20 },
    () => () => Promise.resolve(callsOf(topup).at(-1) === 'again' ? working : null),
  );
};

const callsOf = ({ reference }: Given): string[] => upstream.callsFor(reference).map(({ call }) => call);

describe('a placement without a response', () => {
  it('is looked up, and repeated only when the provider does not show it after its read lag', async () => {
    const topup = await givenTopup(FAR_MS);
    const denials = denialsOf(topup);
    upstream.script(topup.reference, [silence, ...denials]);
    await database.pool.query('UPDATE topups SET next_attempt_at = now() WHERE id = $1', [topup.id]);
    await eventually('placed again', () => callsOf(topup).includes('again'));
    const calls = upstream.callsFor(topup.reference);
    const [first, again] = ['first', 'again'].map((name) => calls.find(({ call }) => call === name)!);
    expect(again!.atMs - first!.atMs).toBeGreaterThanOrEqual(upstream.readLagMs);
    expect(calls.slice(1, calls.indexOf(again!)).every(({ call }) => call === 'find')).toBe(true);
    expect(calls.indexOf(again!)).toBeGreaterThan(1);
    await run(topup, [done]);
    expect(callsOf(topup).filter((call) => call === 'first')).toHaveLength(1);
    expect((await device.read(topup.esimId))['data'].total_bytes).toBe(2 * GB);
  });

  it('is repeated only after a read lag since the end of that call, however long the call took', async () => {
    const topup = await givenTopup(FAR_MS);
    const { readLagMs } = upstream;
    upstream.readLagMs = 2_500;
    let endedAtMs = NaN;
    // Nearly as long as the lag. If the lag counted from the start of the call, it would be over at the next lookup.
    const longSilence = async (): Promise<never> => {
      await sleep(2_000);
      endedAtMs = performance.now();
      throw new ProviderOutcomeUnknown();
    };
    try {
      const denials = denialsOf(topup);
      upstream.script(topup.reference, [longSilence, ...denials]);
      await database.pool.query('UPDATE topups SET next_attempt_at = now() WHERE id = $1', [topup.id]);
      await eventually('placed again', () => callsOf(topup).includes('again'));
      const again = upstream.callsFor(topup.reference).find(({ call }) => call === 'again')!;
      expect(again.atMs - endedAtMs).toBeGreaterThanOrEqual(2_500);
    } finally {
      upstream.readLagMs = readLagMs;
    }
    await run(topup, [done]);
    expect((await device.read(topup.esimId))['data'].total_bytes).toBe(2 * GB);
  });

  it("is found and not repeated if it took effect, and the provider's figures apply", async () => {
    const topup = await givenTopup(FAR_MS);
    const expiresAt = new Date(Date.now() + 90 * DAY_MS);
    const found: ProviderTopupState = { state: 'completed', totalBytes: 3 * GB, expiresAt };
    await run(topup, [silence, () => Promise.resolve(found)]);
    expect(callsOf(topup)).toEqual(['first', 'find']);
    expect(await device.read(topup.esimId)).toMatchObject({
      expires_at: expiresAt.toISOString(),
      data: { total_bytes: 3 * GB },
    });
  });

  it('is not counted twice when a poll has already read the new total', async () => {
    const topup = await givenTopup(FAR_MS);
    await database.pool.query('UPDATE esims SET total_bytes = $2 WHERE id = $1', [topup.esimId, 2 * GB]);
    await run(topup, [() => Promise.resolve({ ...DONE, totalBytes: 2 * GB })]);
    expect((await device.read(topup.esimId))['data'].total_bytes).toBe(2 * GB);
  });
});

describe('a provider response', () => {
  it('leads to another first placement when it says that the provider is busy', async () => {
    const topup = await givenTopup(FAR_MS);
    await run(topup, [busy, busy, done]);
    expect(callsOf(topup)).toEqual(['first', 'first', 'first']);
  });

  it('leads to lookups until the end when it says that the top-up is in progress', async () => {
    const topup = await givenTopup(FAR_MS);
    const working = (): Promise<ProviderTopupState> =>
      Promise.resolve({ state: 'in_progress', checkAfterMs: 50 });
    await run(topup, [working, working, done]);
    expect(callsOf(topup)).toEqual(['first', 'find', 'find']);
  });

  it('fails the top-up with its code and reason when it is a refusal', async () => {
    const topup = await givenTopup(FAR_MS);
    const failure = { code: 'provider_unavailable', reason: 'The upstream has no credit.' } as const;
    const ended = await run(topup, [() => Promise.resolve({ state: 'rejected', failure })]);
    expect(ended).toMatchObject({ status: 'failed', failure });
    expect((await device.read(topup.esimId))['data'].total_bytes).toBe(GB);
  });
});

describe('a worker that has lost its lease', () => {
  it("writes nothing of the provider's response", async () => {
    const topup = await givenTopup(FAR_MS);
    const lateAnswer = async (): Promise<ProviderTopupState> => {
      await database.pool.query('UPDATE topups SET fence = fence + 1, lease_until = now() WHERE id = $1', [
        topup.id,
      ]);
      return DONE;
    };
    await run(topup, [lateAnswer, done]);
    // The worker with the new fence found the first one's purchase and applied it.
    expect(callsOf(topup)).toEqual(['first', 'find']);
    expect((await device.read(topup.esimId))['data'].total_bytes).toBe(2 * GB);
  });
});

describe('an eSIM that ends between acceptance and completion', () => {
  it.each([
    ['expired', 'esim_expired'],
    ['canceled', 'topup_not_supported'],
  ])('costs nothing if nothing was sent to the provider: %s', async (status, code) => {
    const topup = await givenTopup(FAR_MS);
    await database.pool.query('UPDATE esims SET status = $2 WHERE id = $1', [topup.esimId, status]);
    const ended = await run(topup, []);
    expect(ended).toMatchObject({ status: 'failed', failure: { code } });
    expect(callsOf(topup)).toEqual([]);
    expect((await device.read(topup.esimId))['data'].total_bytes).toBe(GB);
  });

  it('gets its top-up once the provider has applied it, and stays ended', async () => {
    const topup = await givenTopup(FAR_MS);
    const expire = async (): Promise<ProviderTopupState> => {
      await device.played(topup.esimId, 'expire');
      return DONE;
    };
    expect(await run(topup, [expire])).toMatchObject({ status: 'completed' });
    const esim = await device.read(topup.esimId);
    expect(esim).toMatchObject({ status: 'expired', data: { total_bytes: 2 * GB } });
    expect(Date.parse(esim['expires_at'] as string)).toBeLessThanOrEqual(Date.now());
  });
});

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

/** Places all of these top-ups in the same event loop turn. */
async function place(ids: readonly string[]): Promise<readonly Promise<ProviderTopupState | null>[]> {
  const { manager } = worker.app.get(DataSource, { strict: false });
  const topups = await Promise.all(ids.map((id) => manager.findOneByOrFail(TopupEntity, { id })));
  const providers = worker.app.get(ProviderRegistry, { strict: false });
  const provider = new FindOrPlace(providers, worker.app.get(TopupJobsRepository, { strict: false }));
  const placed = topups.map((purchase) => {
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
  // The tests await each of them, some only after others.
  for (const placement of placed) placement.catch(() => undefined);
  return placed;
}

/** Locks the row, as support might, while `work` runs. */
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

describe('recording placements before they are sent', () => {
  beforeAll(async () => {
    esimId = await device.activeEsim();
  });
  afterEach(() => vi.restoreAllMocks());

  it('does not delay Live when Sandbox rows are locked (D41)', async () => {
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

  it('waits half a second for a locked row, and then records the rest without it (D43)', async () => {
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
