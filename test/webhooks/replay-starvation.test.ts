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

/** Replays that begin before any other, with an item each; or ended ones that have left theirs. */
async function insertOthers(status: 'running' | 'canceled'): Promise<void> {
  await query(
    `WITH made AS (
       INSERT INTO webhook_replays (id, endpoint_id, partner_id, status, since, until, statuses, total, choosing, ended_at)
       SELECT 'rpl_0000' || n, $1, $2, $3, now() - interval '1 hour', now(), '{delivered}', 1, false,
              CASE WHEN $3 <> 'running' THEN now() END
       FROM generate_series(1, $4::int) AS n
       RETURNING id
     )
     INSERT INTO webhook_replay_items (replay_id, place, delivery_id) SELECT id, 1, 'dlv_none' FROM made`,
    [other.id, partner.id, status, OTHERS],
  );
}

/** From now on PostgreSQL refuses every step of the other replays. */
async function refuseOthers(): Promise<void> {
  await query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'check_violation'; END $$;
               CREATE TRIGGER refuse BEFORE DELETE ON webhook_replay_items FOR EACH ROW
                 WHEN (OLD.replay_id LIKE 'rpl_0000%') EXECUTE FUNCTION refuse()`);
}

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
  it('of which every step fails, another one is carried out, and they stay (D43)', async () => {
    await refuseOthers();
    await insertOthers('running');
    await completeReplay();
    const { rowCount } = await query(`SELECT 1 FROM webhook_replays WHERE status = 'running'`);
    expect(rowCount).toBe(OTHERS);
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
    await insertOthers('running');
    await query('DELETE FROM webhook_replay_items');
    await completeReplay();
    expect((await query(`SELECT 1 FROM webhook_replays WHERE status = 'running'`)).rowCount).toBe(OTHERS);
  });

  it('whose items cannot be removed, those of another one are, and the failure counts (D43)', async () => {
    await refuseOthers();
    await insertOthers('canceled');
    await query(
      `WITH made AS (
         INSERT INTO webhook_replays (id, endpoint_id, partner_id, status, since, until, statuses, total, ended_at)
         VALUES ('rpl_1', $1, $2, 'canceled', now(), now(), '{delivered}', 1, now()) RETURNING id
       )
       INSERT INTO webhook_replay_items (replay_id, place, delivery_id) SELECT id, 1, 'dlv_none' FROM made`,
      [endpoint.id, partner.id],
    );
    const items = `SELECT 1 FROM webhook_replay_items WHERE replay_id = 'rpl_1'`;
    await eventually('they are removed', async () => (await query(items)).rowCount === 0, PATIENCE_MS);
    const metrics = await (await fetch(`${service.process.admin!.url}/metrics`)).text();
    const failed = /^sweep_runs_total\{sweep="webhooks.replay_items",outcome="failed".*\} (\d+)$/m.exec(
      metrics,
    );
    expect(Number(failed?.[1])).toBeGreaterThan(0);
  });
});
