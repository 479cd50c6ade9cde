import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { RoleChild } from '../harness/role-child.js';
import { DAY_MS, GB, placeTopup, TOPUP_1GB_7D, topupEnded, TOPUP_FAIL } from './topup-steps.js';

const ENV = { LEASE_MS: '700', SWEEP_INTERVAL_MS: '100' };

let database: TestDatabase;
let office: TestService;
let front: TestService;
let worker: RoleChild;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  database = await createTestDatabase();
  [office, front] = await Promise.all([
    startTestService({ role: 'admin', database }),
    startTestService({ role: 'api', database }),
  ]);
  const partner: TestPartner = await office.createPartner();
  api = front.partnerApi(partner.sandboxKey);
  device = new EsimDevice(api);
  worker = await RoleChild.start({ role: 'worker', database, env: ENV });
});

afterAll(async () => {
  await worker?.kill();
  await Promise.all([front?.stop(), office?.stop()]);
  await database?.drop();
});

/** Runs `action` between the provider's answer and the commit of the top-up: its eSIM's row is locked meanwhile. */
async function beforeTheCommit(esimId: string, request: object, action: () => Promise<void>): Promise<Json> {
  const client = await database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM esims WHERE id = $1 FOR NO KEY UPDATE', [esimId]);
    const topup = await placeTopup(api, request);
    await eventually('the upstream has it, and the end waits for the eSIM', async () => {
      const { rowCount } = await database.pool.query(
        `SELECT 1 FROM sandbox_upstream_topups u JOIN topups t ON t.provider_reference = u.reference
         WHERE t.id = $1 AND EXISTS (SELECT 1 FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock')`,
        [topup['id']],
      );
      return rowCount === 1;
    });
    await action();
    return topup;
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

async function endings(topupId: string): Promise<string[]> {
  const events = (await readFeed(api)).filter((event) => event['data'].topup_id === topupId);
  return events.map((event) => event['type'] as string);
}

async function upstreamTopups(topupId: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM sandbox_upstream_topups u
     JOIN topups t ON u.provider_esim_id = (SELECT provider_esim_id FROM esims e WHERE e.id = t.esim_id)
     WHERE t.id = $1`,
    [topupId],
  );
  return rows[0]!.n;
}

describe('a worker that is killed between the provider call and the commit', () => {
  it('has bought and applied the top-up once, with one event, after the next one took it over', async () => {
    const esimId = await device.activeEsim();
    const before = await device.read(esimId);
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D };
    const { id } = await beforeTheCommit(esimId, request, () => worker.kill());
    expect((await api.get(`/v1/topups/${id}`)).body.data.status).toBe('processing');
    expect((await device.read(esimId))['data'].total_bytes).toBe(GB);

    await worker.restart();
    expect(await topupEnded(api, id as string)).toMatchObject({ status: 'completed' });
    const after = await device.read(esimId);
    expect(after['data'].total_bytes).toBe(2 * GB);
    expect(Date.parse(after['expires_at'] as string) - Date.parse(before['expires_at'] as string)).toBe(
      7 * DAY_MS,
    );
    expect(await endings(id as string)).toEqual(['order.topup.completed']);
    expect(await upstreamTopups(id as string)).toBe(1);
  });
});

describe('a notification that is lost', () => {
  it('is made up for by the sweep: no worker was there to hear it', async () => {
    const esimId = await device.activeEsim();
    await worker.kill();
    const accepted = await placeTopup(api, { esim_id: esimId, package_id: TOPUP_FAIL });
    await worker.restart();
    expect(await topupEnded(api, accepted['id'] as string)).toMatchObject({ status: 'failed' });
  });
});
