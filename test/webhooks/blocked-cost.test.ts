import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { endpointState, recordEvents, registerEndpoint } from './support.js';

const SWEEP_MS = 250;
const WINDOW_MS = 4_000;
const ENV = {
  SWEEP_INTERVAL_MS: String(SWEEP_MS),
  WEBHOOK_RETRY_DELAYS_MS: '1',
  WEBHOOK_BLOCK_MS: '60000',
};

let office: TestService;
let receiver: TestReceiver;
let workers: RoleChild[];

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
  receiver = await startReceiver();
  receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
  const start = () => RoleChild.start({ role: 'worker', database: office.database, env: ENV });
  workers = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await receiver.close();
  await office.stop();
});

interface Churn {
  /** When it was counted, by the database; of a difference, how long it took. In milliseconds. */
  readonly ms: number;
  /** Looks into the index of what is due. */
  readonly looks: number;
  /** Rows that the queue wrote: jobs made, moved or ended. */
  readonly jobWrites: number;
  readonly deliveryWrites: number;
}

async function counters(): Promise<Churn> {
  const { rows } = await office.database.pool.query<Record<string, string>>(
    `SELECT (SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'webhook_deliveries_due') AS looks,
            (SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables
             WHERE schemaname = 'bullmq' AND relname = 'job') AS job_writes,
            (SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables
             WHERE relname = 'webhook_deliveries_open') AS delivery_writes,
            extract(epoch FROM clock_timestamp()) * 1000 AS ms`,
  );
  const { looks, job_writes, delivery_writes, ms } = rows[0]!;
  return {
    ms: Number(ms),
    looks: Number(looks),
    jobWrites: Number(job_writes),
    deliveryWrites: Number(delivery_writes),
  };
}

/** What the service did to its tables in four seconds, or more on a busy machine. Sessions report at most a second late while they work. */
async function churn(): Promise<Churn> {
  const before = await counters();
  await sleep(WINDOW_MS);
  const after = await counters();
  return {
    ms: after.ms - before.ms,
    looks: after.looks - before.looks,
    jobWrites: after.jobWrites - before.jobWrites,
    deliveryWrites: after.deliveryWrites - before.deliveryWrites,
  };
}

describe('a blocked endpoint with a backlog (D31, A11)', () => {
  it('costs the sweep and nothing else: no claims, no jobs, no writes', async () => {
    const partner = await office.createPartner();
    const endpoint = await registerEndpoint(office, partner.id, { url: receiver.url });
    await sleep(2_000);
    const quiet = await churn();
    const events = Array.from({ length: 200 }, () => ({ partnerId: partner.id }));
    await recordEvents(office, events.slice(0, 1));
    await eventually('blocked', async () => (await endpointState(office, endpoint)).status === 'blocked');
    // At the commit, or a session that is busy until then says it ten seconds later.
    await recordEvents(office, events, async ({ manager }) => {
      await manager.query('SELECT pg_stat_force_next_flush()');
    });
    // The notifications of these events, and the statistics of the work before the block.
    await sleep(2_000);
    const [sent, blocked] = [receiver.received.length, await churn()];
    console.log('quiet', quiet, 'blocked', blocked);
    expect(receiver.received).toHaveLength(sent);
    // Sessions that went idle report their last work up to ten seconds late; churn would be hundreds.
    expect(blocked.deliveryWrites).toBeLessThan(20);
    expect(blocked.jobWrites).toBeLessThan(20);
    const sweepsIn = (ms: number): number => (2 * ms) / SWEEP_MS;
    // The sweep passes from endpoint to endpoint through the index, twice when there is a backlog; a second is reported late.
    const most = quiet.looks * (blocked.ms / quiet.ms) + sweepsIn(blocked.ms) + 2 * sweepsIn(1_000);
    expect(blocked.looks).toBeLessThanOrEqual(most);
    expect((await endpointState(office, endpoint)).status).toBe('blocked');
  });
});
