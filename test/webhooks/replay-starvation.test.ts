import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { FAST, recordEvent, type RegisteredEndpoint, registerEndpoint } from './support.js';

/** More than the runner looks at in one of its ticks. */
const OTHERS = 120;
/** Three thousand statements one after the other, each of which waits for a core on a busy machine. */
const PATIENCE_MS = 240_000;

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;
/** Another endpoint, for which the other replays are. */
let other: RegisteredEndpoint;

beforeEach(async () => {
  service = await startTestService({ env: FAST });
  receiver = await startReceiver();
  partner = await service.createPartner();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  await recordEvent(service, { partnerId: partner.id });
  const delivered = `SELECT 1 FROM webhook_deliveries WHERE status = 'delivered'`;
  await eventually('delivered', async () => (await query(delivered)).rowCount === 1);
  other = await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterEach(async () => {
  await service.stop();
  await receiver.close();
});

const query = (text: string, values: unknown[] = []) => service.database.pool.query(text, values);

/** Replays that begin before any other, at `step`; they repeat the one delivery of the other endpoint. */
async function insertOthers(step: 'repeat' | 'await'): Promise<void> {
  await query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, ended_at,
                                     delivered_at)
     SELECT 'dlv_other', $1, partner_id, mode, event_id, event_type, kind, status, ended_at, delivered_at
     FROM webhook_deliveries WHERE endpoint_id = $2`,
    [other.id, endpoint.id],
  );
  await query(
    `INSERT INTO webhook_backlog_jobs (id, kind, step, endpoint_id, partner_id, since, until, statuses, total)
     SELECT 'rpl_0000' || n, 'replay', $3, $1, $2, now() - interval '1 hour', now(), '{delivered}', 1
     FROM generate_series(1, $4::int) AS n`,
    [other.id, partner.id, step, OTHERS],
  );
}

const running = async (): Promise<number | null> =>
  (await query(`SELECT 1 FROM webhook_backlog_jobs WHERE status = 'running'`)).rowCount;

async function completeReplay(): Promise<void> {
  const started = await service.admin.post(`${endpoint.path}/replay`, { since: '2026-01-01T00:00:00Z' });
  const path = `/internal/v1/replays/${started.body.data.id}`;
  await eventually(
    'the replay is completed',
    async () => (await service.admin.get(path)).body.data.status === 'completed',
    PATIENCE_MS,
  );
}

describe(`beside ${OTHERS} replays`, { timeout: PATIENCE_MS + 30_000 }, () => {
  it('of which every step fails, another one is carried out, they stay, and the failure counts (D43)', async () => {
    await query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'check_violation'; END $$;
                 CREATE TRIGGER refuse BEFORE INSERT ON webhook_deliveries_open FOR EACH ROW
                   WHEN (NEW.replay_id LIKE 'rpl_0000%') EXECUTE FUNCTION refuse()`);
    await insertOthers('repeat');
    await completeReplay();
    expect(await running()).toBe(OTHERS);
    const metrics = await (await fetch(`${service.process.admin!.url}/metrics`)).text();
    const failed = /^sweep_runs_total\{sweep="webhooks.backlogs",outcome="failed".*\} (\d+)$/m.exec(metrics);
    expect(Number(failed?.[1])).toBeGreaterThan(0);
  });

  it('that wait for their receivers, another one is carried out (D34)', async () => {
    await query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, replay_id,
                                       next_attempt_at)
       SELECT 'dlv_' || n, $1, $2, 'sandbox', 'evt_1', 'esim.activated', 'replay', 'pending', 'rpl_0000' || n,
              now() + interval '1 day'
       FROM generate_series(1, $3::int) AS n`,
      [other.id, partner.id, OTHERS],
    );
    await insertOthers('await');
    await completeReplay();
    expect(await running()).toBe(OTHERS);
  });
});
