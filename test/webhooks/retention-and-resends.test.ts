import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import {
  deliveryThat,
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  type RegisteredEndpoint,
  registerEndpoint,
} from './support.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;

beforeAll(async () => {
  service = await startTestService({ env: { ...FAST, WEBHOOK_ATTEMPT_RETENTION_DAYS: '30' } });
  receiver = await startReceiver();
  partner = await service.createPartner('Keeper');
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function partitions(): Promise<string[]> {
  const { rows } = await service.database.pool.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'webhook_attempts'::regclass ORDER BY 1`,
  );
  return rows.map((row) => row.name);
}

const dayName = (offset: number): string =>
  `webhook_attempts_p${new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')}`;

describe('attempts', () => {
  it('lie in partitions of a day that the worker makes ahead by itself', async () => {
    await eventually('today and the next days are there', async () => {
      const names = await partitions();
      return [0, 1, 2, 3].every((offset) => names.includes(dayName(offset)));
    });
    await recordEvent(service, { partnerId: partner.id });
    await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
    const { rows } = await service.database.pool.query(`SELECT count(*)::int AS n FROM ${dayName(0)}`);
    expect(rows[0].n).toBeGreaterThan(0);
  });

  it('older than the retention go by dropping their day; the deliveries stay', async () => {
    const { pool } = service.database;
    const id = (await listDeliveries(service, endpoint))[0]!.id;
    const day = new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10);
    const old = `webhook_attempts_p${day.replaceAll('-', '')}`;
    await pool.query(`CREATE TABLE ${old} PARTITION OF webhook_attempts
      FOR VALUES FROM ('${day}T00:00:00Z') TO ('${day}T00:00:00Z'::timestamptz + interval '1 day')`);
    await pool.query(`UPDATE webhook_attempts SET recorded_at = '${day}T12:00:00Z' WHERE delivery_id = $1`, [
      id,
    ]);
    // A worker does it when it starts, and every ten minutes from then on.
    const worker = await startTestService({ role: 'worker', database: service.database, env: FAST });
    await eventually('the old day is gone', async () => !(await partitions()).includes(old));
    await worker.stop();
    expect(await getDelivery(service, id)).toMatchObject({ status: 'delivered', attempts: [] });
  });
});

describe('resends', () => {
  it('during a wait are deliveries of their own: the waiting one keeps its attempts and its time', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    const before = (await listDeliveries(service, endpoint)).length;
    await recordEvent(service, { partnerId: partner.id });
    const failed = await deliveryThat(service, endpoint, 'has failed for good', (d) => d.status === 'failed');
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(204).end();
    await service.admin.post(`${endpoint.path}/enable`, {});
    const calls = [1, 2].map(() => service.admin.post(`/internal/v1/deliveries/${failed.id}/resend`));
    const ids = (await Promise.all(calls)).map((answer) => answer.body.data.id as string);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) {
      await eventually(
        'it is delivered',
        async () => (await getDelivery(service, id)).status === 'delivered',
      );
      expect((await getDelivery(service, id)).attempts.map(({ number }) => number)).toEqual([1]);
    }
    const unchanged = await getDelivery(service, failed.id);
    expect(unchanged).toMatchObject({ status: 'failed', attempt_count: 6 });
    expect(unchanged.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await listDeliveries(service, endpoint)).toHaveLength(before + 3);
  });
});
