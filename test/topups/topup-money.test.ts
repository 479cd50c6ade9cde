import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Transactions } from '../../src/infra/database/index.js';
import { type ProviderTopupState } from '../../src/providers/index.js';
import { PlaceTopup } from '../../src/topups/place-topup.js';
import {
  createTestDatabase,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { type Json, orderEnded, placeOrder } from '../harness/order-steps.js';
import { type ScriptedWorker, ScriptedUpstream, startWorkerWith } from './scripted-upstream.js';
import { BASE, TOPUP_1GB_7D, TOPUP_DAYS, topupEnded } from './topup-steps.js';

const DEPOSIT = 1_000;
const PRICE = 400;
const upstream = new ScriptedUpstream();
let database: TestDatabase;
let office: TestService;
let front: TestService;
let worker: ScriptedWorker;
let partner: TestPartner;
/** The partner's live key. */
let live: HttpClient;
let esimId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  [office, front] = await Promise.all([
    startTestService({ role: 'admin', database }),
    startTestService({ role: 'api', database }),
  ]);
  worker = await startWorkerWith(upstream, database);
  partner = await office.createPartner();
  live = front.partnerApi(await office.createKey(partner.id, 'live'));
  await sellInLive();
  esimId = await liveEsim();
  const deposit = await office.admin.post(`/internal/v1/partners/${partner.id}/wallet/deposits`, {
    amount: { amount: DEPOSIT, currency: 'USD' },
    reference: 'first-deposit',
  });
  expect(deposit.status, deposit.text).toBe(201);
});

afterAll(async () => {
  await worker.stop();
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

/** The base and two top-ups in live; the days are of another wholesaler. */
async function sellInLive(): Promise<void> {
  await database.pool.query(
    `INSERT INTO packages SELECT (jsonb_populate_record(p, jsonb_build_object('mode', 'live', 'price_amount', $2::int))).*
     FROM packages p WHERE mode = 'sandbox' AND id = ANY ($1)`,
    [[BASE, TOPUP_1GB_7D, TOPUP_DAYS], PRICE],
  );
  await database.pool.query(`UPDATE catalog_versions SET version = version + 1`);
  await database.pool.query(
    `INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
     VALUES ($1, $2, 'TOPUP_UP_1', 'topup', 2500000, 'USD'), ($3, 'another', 'DAYS_1', 'topup', 1, 'USD')`,
    [TOPUP_1GB_7D, upstream.name, TOPUP_DAYS],
  );
}

async function liveEsim(): Promise<string> {
  const sandbox = front.partnerApi(partner.sandboxKey);
  const { id } = await placeOrder(sandbox, { package_id: BASE });
  await orderEnded(sandbox, id as string);
  const rows = await copyToLive(database, await rowsOf(database, id as string));
  await database.pool.query('UPDATE esims SET provider = $2 WHERE id = $1', [rows.esimId, upstream.name]);
  return rows.esimId;
}

async function balance(): Promise<number[]> {
  const [usd] = (await live.get('/v1/balance')).body.data as Json[];
  return ['posted', 'held', 'available'].map((name) => usd![name].amount as number);
}

/** Accepted in the worker's process, which knows the scripted upstream; the partner API's does not. */
async function accept(answer: ProviderTopupState): Promise<string> {
  const topup = await worker.app.get(Transactions, { strict: false }).run(async (tx) => {
    const accepted = await worker.app.get(PlaceTopup, { strict: false }).execute(
      tx,
      { partnerId: partner.id, mode: 'live' },
      {
        esimId,
        packageId: TOPUP_1GB_7D,
        reference: null,
        maxPrice: null,
        metadata: {},
        requestId: 'req_test',
      },
    );
    upstream.script(accepted.providerReference, [
      async () => {
        heldWhileAsked = await balance();
        return answer;
      },
    ]);
    return accepted;
  });
  return topup.id;
}
let heldWhileAsked: number[];

describe('the price of a live top-up', () => {
  it('is held at acceptance and released when the top-up fails', async () => {
    const failure = { code: 'provider_rejected', reason: 'No.' } as const;
    const id = await accept({ state: 'rejected', failure });
    expect(await topupEnded(live, id)).toMatchObject({ status: 'failed', failure });
    expect(heldWhileAsked).toEqual([DEPOSIT, PRICE, DEPOSIT - PRICE]);
    expect(await balance()).toEqual([DEPOSIT, 0, DEPOSIT]);
  });

  it('is captured when the top-up completes, as a charge that names it', async () => {
    const id = await accept({ state: 'completed', totalBytes: null, expiresAt: null });
    expect(await topupEnded(live, id)).toMatchObject({ status: 'completed', mode: 'live' });
    expect(heldWhileAsked).toEqual([DEPOSIT, PRICE, DEPOSIT - PRICE]);
    expect(await balance()).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
    const [charge] = (await live.get('/v1/transactions')).body.data as Json[];
    expect(charge).toMatchObject({ type: 'charge', topup_id: id, amount: { amount: -PRICE } });
  });

  it('keeps what it cost upstream, and the name it was bought under', async () => {
    const { rows } = await database.pool.query(
      'SELECT DISTINCT provider, upstream_package_id, unit_cost_micros::int, unit_cost_currency FROM topups',
    );
    expect(rows).toEqual([
      {
        provider: upstream.name,
        upstream_package_id: 'TOPUP_UP_1',
        unit_cost_micros: 2_500_000,
        unit_cost_currency: 'USD',
      },
    ]);
  });

  it('that the wallet does not cover is refused, and no top-up is left', async () => {
    await database.pool.query(`UPDATE packages SET price_amount = 10000 WHERE mode = 'live' AND id = $1`, [
      TOPUP_1GB_7D,
    ]);
    const before = (await live.get('/v1/topups')).body.data as Json[];
    const refused = accept({ state: 'completed', totalBytes: null, expiresAt: null });
    await expect(refused).rejects.toMatchObject({ code: 'insufficient_balance', status: 402 });
    expect((await live.get('/v1/topups')).body.data).toEqual(before);
    expect(await balance()).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
  });
});

describe('a live top-up through the partner API', () => {
  it('of a package that another wholesaler provides is neither offered nor taken', async () => {
    const offered = (await live.get(`/v1/esims/${esimId}/topup-packages`)).body.data as Json[];
    expect(offered.map((item) => item['id'])).toEqual([TOPUP_1GB_7D]);
    const answer = await live.post('/v1/topups', { esim_id: esimId, package_id: TOPUP_DAYS });
    expectProblem(answer, 409, 'topup_not_supported');
  });

  it('is 503 while its wholesaler is not connected, and holds nothing', async () => {
    const before = await balance();
    const answer = await live.post('/v1/topups', { esim_id: esimId, package_id: TOPUP_1GB_7D });
    expectProblem(answer, 503, 'service_unavailable');
    expect(await balance()).toEqual(before);
  });
});
