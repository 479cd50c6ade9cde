import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { idFloor, ulid } from '../../src/common/ids.js';
import type { Mode } from '../../src/common/mode.js';
import { dayOf, partitionName } from '../../src/infra/partition-days.js';
import { DiscardDeliveries } from '../../src/webhooks/worker/discard-deliveries.js';
import { DiscardsRepository } from '../../src/webhooks/worker/discards.repository.js';
import { startTestService, type TestService } from '../harness/index.js';
import { fillTable } from '../infra/database/filled-tables.js';
import { maintainDays, makeDays } from '../retention/purge-by-hand.js';

const PARTNERS = ['ptn_1', 'ptn_2'] as const;
const MODES = ['sandbox', 'live'] as const;

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ role: 'admin' });
  await query(
    `INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'One', 'active'), ('ptn_2', 'Two', 'active')`,
  );
  for (const partner of PARTNERS)
    for (const mode of MODES)
      await query(
        `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, updated_at)
         VALUES ($1, $2, $3, 'https://partner.example', '', false, now() - interval '1 year')`,
        [endpointOf(partner, mode), partner, mode],
      );
});
afterAll(() => service.stop());

const query = (text: string, values: unknown[] = []) => service.database.pool.query(text, values);
const endpointOf = (partner: string, mode: Mode): string => `whe_${partner}_${mode}`;
/** One hour into the day that was `days` days ago. */
const hourOf = (days: number): Date => new Date(dayOf(new Date(), -days).getTime() + 3_600_000);

interface Row {
  readonly partner?: string;
  readonly mode?: Mode;
  readonly age: number;
  readonly status?: 'pending' | 'delivered';
  /** How many days ago it ended. By default, when it was created. */
  readonly ended?: number;
}

/** Inserts an event and its delivery, and returns the delivery's id, which contains partner, mode and age. */
async function insert({
  partner = 'ptn_1',
  mode = 'sandbox',
  age,
  status = 'delivered',
  ended = age,
}: Row): Promise<string> {
  const at = hourOf(age);
  const event = `${idFloor('evt', at)}${ulid().slice(10)}`;
  const id = `dlv_${ulid(at.getTime())}`;
  await query(
    `INSERT INTO events (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, $3, 'esim.activated', '{}', $4)`,
    [event, partner, mode, at],
  );
  await query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, created_at,
                                     next_attempt_at, delivered_at, ended_at)
     VALUES ($1, $2, $3, $4, $5, 'esim.activated', 'event', $6, $7::timestamptz, CASE $6 WHEN 'pending' THEN $7::timestamptz END,
             CASE $6 WHEN 'delivered' THEN $8::timestamptz END, CASE $6 WHEN 'delivered' THEN $8::timestamptz END)`,
    [id, endpointOf(partner, mode), partner, mode, event, status, at, hourOf(ended)],
  );
  return id;
}

/** The remaining rows of a table, e.g. `ptn_1 sandbox 30`, sorted. */
async function kept(table: 'events' | 'webhook_deliveries'): Promise<string[]> {
  const { rows } = await query(
    `SELECT partner_id || ' ' || mode || ' ' || (now() AT TIME ZONE 'UTC')::date - (created_at AT TIME ZONE 'UTC')::date AS row
     FROM ${table} ORDER BY partner_id, mode DESC, created_at DESC`,
  );
  return rows.map(({ row }) => row as string);
}

const clear = () => query('TRUNCATE events, webhook_deliveries');

describe('an event or an ended delivery', () => {
  it('is deleted after 30 days in Sandbox and 90 in Live, for every partner, and not a day earlier', async () => {
    await makeDays(service, [29, 30, 31, 89, 90, 91]);
    const rows = PARTNERS.flatMap((partner) => [
      ...[29, 30, 31].map((age) => ({ partner, mode: 'sandbox' as const, age })),
      ...[31, 89, 90, 91].map((age) => ({ partner, mode: 'live' as const, age })),
    ]);
    for (const row of rows) await insert(row);
    await maintainDays(service);
    const expected = PARTNERS.flatMap((partner) => [
      ...[29, 30].map((age) => `${partner} sandbox ${age}`),
      ...[31, 89, 90].map((age) => `${partner} live ${age}`),
    ]);
    expect(await kept('events')).toEqual(expected);
    expect(await kept('webhook_deliveries')).toEqual(expected);
    await clear();
  });

  it('is kept while a delivery of its day is open, at any age, and a missing partition is recreated', async () => {
    await makeDays(service, [40]);
    const id = await insert({ age: 40, status: 'pending' });
    await maintainDays(service);
    expect(await kept('events')).toEqual(['ptn_1 sandbox 40']);
    expect(await kept('webhook_deliveries')).toEqual(['ptn_1 sandbox 40']);
    // Simulates a restored database or a partition that was dropped by hand.
    await query(`DROP TABLE ${partitionName('webhook_deliveries_sandbox', dayOf(hourOf(40)))}`);
    await maintainDays(service);
    await query(
      `UPDATE webhook_deliveries SET status = 'failed', ended_at = now(), failed_at = now() WHERE id = $1`,
      [id],
    );
    expect(await kept('webhook_deliveries')).toEqual(['ptn_1 sandbox 40']);
    await clear();
  });

  it('is deleted in steps, unless it ended late, and the partition is dropped last', async () => {
    await makeDays(service, [45, 75]);
    for (let nth = 0; nth < 3; nth++) await insert({ age: 45 });
    await insert({ age: 45, ended: 5, partner: 'ptn_2' });
    await insert({ age: 75, ended: 35 });
    await maintainDays(service);
    expect(await kept('webhook_deliveries')).toEqual(['ptn_2 sandbox 45']);
    expect(await kept('events')).toEqual([]);
    await query(`UPDATE webhook_deliveries SET ended_at = ended_at - interval '30 days'`);
    await maintainDays(service);
    expect(await kept('webhook_deliveries')).toEqual([]);
    const { rows } = await query('SELECT to_regclass($1) AS day', [
      partitionName('webhook_deliveries_sandbox', dayOf(hourOf(45))),
    ]);
    expect(rows[0].day).toBeNull();
  });
});

describe('an attempt', () => {
  it('is dropped with its day after the retention, and its delivery is kept', async () => {
    await makeDays(service, [20]);
    await maintainDays(service);
    const id = await insert({ age: 20 });
    const old = dayOf(new Date(), -40).toISOString();
    const day = `webhook_attempts_p${old.slice(0, 10).replaceAll('-', '')}`;
    await query(`CREATE TABLE ${day} PARTITION OF webhook_attempts
      FOR VALUES FROM ('${old}') TO ('${old}'::timestamptz + interval '1 day')`);
    for (const at of [`'${old}'`, 'now()'])
      await fillTable(service.database.pool, 'webhook_attempts', 1, {
        delivery_id: `'${id}'`,
        recorded_at: at,
      });
    const count = async (): Promise<number> =>
      (await query('SELECT FROM webhook_attempts WHERE delivery_id = $1', [id])).rowCount!;
    expect(await count()).toBe(2);
    await maintainDays(service);
    expect(await count()).toBe(1);
    expect((await query('SELECT to_regclass($1) AS day', [day])).rows).toEqual([{ day: null }]);
    expect(await kept('webhook_deliveries')).toEqual(['ptn_1 sandbox 20']);
    await clear();
  });
});

describe('a worker stop', () => {
  it('stops emptying a day after the current step, and the next run continues', async () => {
    await makeDays(service, [45]);
    await insert({ age: 45, ended: 5 });
    await query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, created_at,
                                       delivered_at, ended_at)
       SELECT 'dlv_' || n, $1, 'ptn_1', 'sandbox', 'evt_' || n, 'esim.activated', 'event', 'delivered', $2, $2, $2
       FROM generate_series(1, 5000) AS n`,
      [endpointOf('ptn_1', 'sandbox'), hourOf(45)],
    );
    const stop = new AbortController();
    const { dataSource } = service.process.resources;
    const left = async (): Promise<number> => (await kept('webhook_deliveries')).length;
    // Aborts during the first step.
    const asked = vi.spyOn(dataSource.logger, 'logQuery').mockImplementation((text) => {
      if (text.startsWith('DELETE FROM webhook_deliveries_sandbox_p')) stop.abort();
    });
    await maintainDays(service, undefined, stop.signal).finally(() => asked.mockRestore());
    expect(stop.signal.aborted).toBe(true);
    expect(await left()).toBe(3_001);
    await maintainDays(service);
    expect(await left()).toBe(1);
    await clear();
  });
});

describe('a held delivery of a disabled endpoint', () => {
  it('is discarded after the retention, and never earlier: it stays in the log, and its event is deleted', async () => {
    const { manager } = service.process.resources.dataSource;
    const discard = new DiscardDeliveries(new DiscardsRepository(manager));
    await makeDays(service, [29, 31, 91]);
    const [young, past] = [
      await insert({ age: 29, status: 'pending' }),
      await insert({ age: 31, status: 'pending', partner: 'ptn_2' }),
    ];
    const live = await insert({ age: 31, status: 'pending', mode: 'live' });
    const justDisabled = await insert({ age: 91, status: 'pending', mode: 'live', partner: 'ptn_2' });
    await query(`UPDATE webhook_endpoints SET updated_at = now() WHERE id = $1`, [
      endpointOf('ptn_2', 'live'),
    ]);
    expect(await discard.discard({ of: 'held', mode: 'sandbox', days: 30 })).toBe(1);
    expect(await discard.discard({ of: 'held', mode: 'live', days: 90 })).toBe(0);
    await maintainDays(service);
    const { rows } = await query('SELECT id, status FROM webhook_deliveries');
    expect(Object.fromEntries(rows.map(({ id, status }) => [id, status]))).toEqual({
      [young]: 'pending',
      [past]: 'discarded',
      [live]: 'pending',
      [justDisabled]: 'pending',
    });
    const logged = await service.admin.get(`/internal/v1/deliveries/${past}`);
    expect(logged.body.data).toMatchObject({ status: 'discarded' });
    expect(await kept('events')).not.toContain('ptn_2 sandbox 31');
    // A resend would have no event body.
    const resent = await service.admin.post(`/internal/v1/deliveries/${past}/resend`);
    expect(resent.status).toBe(409);
    await clear();
  });
});
