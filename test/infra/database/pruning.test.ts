import type { DataSource, EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CursorCodec } from '../../../src/infra/crypto/index.js';
import { newId } from '../../../src/common/ids.js';
import { EventEntity, EventRecorder, type NewEvent } from '../../../src/events/index.js';
import type { WorkerNotifier } from '../../../src/infra/jobs/index.js';
import { EventsRepository } from '../../../src/events/events.repository.js';
import { DailyPartitions } from '../../../src/infra/daily-partitions.js';
import { dayOf } from '../../../src/infra/partition-days.js';
import { createDataSource, KeysetPages, sql, Transactions } from '../../../src/infra/database/index.js';
import { loadConfig } from '../../../src/config/index.js';
import { WEBHOOK_ENTITIES } from '../../../src/webhooks/index.js';
import { BacklogJobEntity } from '../../../src/webhooks/backlog-job.entity.js';
import { BacklogJobsRepository } from '../../../src/webhooks/backlog-jobs.repository.js';
import { BacklogJobs } from '../../../src/webhooks/backlog-jobs.js';
import { BacklogStepsRepository } from '../../../src/webhooks/backlog-steps.repository.js';
import { WebhookDeliveriesRepository } from '../../../src/webhooks/webhook-deliveries.repository.js';
import { DeliveryFanOut } from '../../../src/webhooks/delivery-fan-out.js';
import {
  DeliveriesRepository,
  type StartedDelivery,
} from '../../../src/webhooks/worker/deliveries.repository.js';
import { DeliveryTracesRepository } from '../../../src/webhooks/worker/delivery-traces.repository.js';
import { createTestDatabase, type TestDatabase, testEnvironment } from '../../harness/index.js';
import { attemptOf, FENCE, judged, OWNER } from '../../webhooks/deliveries-bed.js';

const DAYS = 120;
const SCOPE = { partnerId: 'ptn_1', mode: 'live' } as const;

let database: TestDatabase;
let dataSource: DataSource;
/** The event id of the first test. */
let event = '';
const pages = new KeysetPages({ encode: () => '', decode: () => [] } as unknown as CursorCodec);

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await createDataSource({
    url: database.url,
    poolMax: 3,
    poolWaitMs: 20_000,
    entities: [EventEntity, ...WEBHOOK_ENTITIES],
    applicationName: 'test',
  }).initialize();
  const partitions = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  const days = Array.from({ length: DAYS }, (_, age) => dayOf(new Date(), -age));
  const openDays = () => Promise.resolve(days);
  const common = { retentionDays: DAYS, openDays };
  await partitions.ensure({ table: 'events_live', ranges: { idPrefix: 'evt' }, ...common });
  await partitions.ensure({ table: 'webhook_deliveries_live', ranges: 'times', ...common });
  await partitions.ensure({ table: 'webhook_attempts', ranges: 'times', ...common });
  await database.pool.query(
    `INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'One', 'active');
     INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret)
     VALUES ('whe_1', 'ptn_1', 'live', 'https://partner.example', ''),
            ('whe_2', 'ptn_1', 'live', 'https://partner.example', '');
     INSERT INTO webhook_endpoint_leases (endpoint_id, owner, fence, until)
     SELECT id, '${OWNER}', ${FENCE}, now() + interval '1 hour' FROM webhook_endpoints`,
  );
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

/** The number of day partitions that `work` plans or reads, taken from the locks of its transaction. */
async function daysOf(work: (manager: EntityManager) => Promise<unknown>): Promise<number> {
  return new Transactions(dataSource).run(async ({ manager }) => {
    await work(manager);
    const { rows } = await sql<{ days: number }>(
      manager,
      `SELECT count(DISTINCT c.oid)::int AS days FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
       WHERE l.pid = pg_backend_pid() AND c.relkind = 'r' AND c.relname ~ '_p[0-9]{8}$'`,
    );
    return rows[0]!.days;
  });
}

const txOf = (manager: EntityManager) => ({ manager, afterCommit: () => undefined });
const deliveries = (manager: EntityManager) => new WebhookDeliveriesRepository(manager, pages);
const events = (manager: EntityManager) => new EventsRepository(manager, pages);
const config = () => loadConfig(testEnvironment(database.url));
const open = (manager: EntityManager) => new DeliveriesRepository(manager);

describe(`partition pruning with ${DAYS} days of events, deliveries and attempts`, () => {
  it('is impossible for a statement without a condition, which proves that the count works', async () => {
    expect(await daysOf((manager) => sql(manager, 'SELECT 1 FROM events LIMIT 1'))).toBeGreaterThan(DAYS);
  });

  it('applies to recording events and to claiming, renewing and recording deliveries', async () => {
    // The day of the event. Open deliveries have one partition.
    const recorder = new EventRecorder();
    new DeliveryFanOut(recorder, { notify: () => undefined } as unknown as WorkerNotifier).onModuleInit();
    const happenedAt = new Date();
    const happened = { ...SCOPE, type: 'esim.activated', happenedAt, data: {} } as unknown as NewEvent;
    expect(await daysOf((manager) => recorder.record(txOf(manager), [happened]))).toBe(1);
    let claims: readonly StartedDelivery[] = [];
    const wanted = [{ endpointId: 'whe_1', fence: FENCE, free: 10 }];
    // One day of events of one mode, for the body. From the sixth call on, prepared statements may use a generic plan.
    for (let call = 0; call < 8; call++)
      expect(
        await daysOf(async (manager) => {
          const { deliveries: started } = (await open(manager).claim(OWNER, wanted)).get('whe_1')!;
          if (started.length > 0) claims = started;
        }),
      ).toBeLessThanOrEqual(1);
    event = (JSON.parse(claims[0]!.body!) as { id: string }).id;
    const [claim] = claims;
    const traced = { ...claim!, body: `{"id":"${event}"` };
    // The day of the event, derived from its id.
    expect(
      await daysOf(async (manager) =>
        expect(await new DeliveryTracesRepository(manager).find(traced)).toEqual({ cause: null, number: 1 }),
      ),
    ).toBe(1);
    expect(await daysOf((manager) => open(manager).listEndpointsDue(OWNER, '', 100))).toBe(0);
    const { id: deliveryId, fence } = claim!;
    const outcome = 'delivered';
    const attempt = attemptOf({ deliveryId, endpointId: 'whe_1', fence, countedAttempts: 0, outcome });
    // The target day of the delivery, and the day of its attempt.
    const record = (manager: EntityManager) =>
      open(manager).record(manager, OWNER, [judged(config(), attempt)]);
    expect(await daysOf(record)).toBe(2);
    const found = await deliveries(dataSource.manager).findWithLog(claim!.id);
    expect(found).toMatchObject({
      delivery: { status: 'delivered' },
      attempts: [{ number: 1 }],
      body: claim!.body,
    });
    // The hour before and after the time of its id, for both modes.
    expect(await daysOf((manager) => deliveries(manager).find(claim!.id))).toBeLessThanOrEqual(4);
    // An unknown id, for both modes.
    expect(await daysOf((manager) => deliveries(manager).find(newId('dlv')))).toBeLessThanOrEqual(2 * 16);
    expect(await daysOf((manager) => deliveries(manager).findWithLog(claim!.id))).toBeLessThanOrEqual(7);
  });

  it('applies to polling the feed and assigning positions', async () => {
    const window = { from: new Date(Date.now() - 3_600_000), to: new Date(Date.now() + 3_600_000) };
    expect(await daysOf((manager) => events(manager).hasUnpositioned(window, 'live'))).toBeLessThanOrEqual(2);
    const repository = events(dataSource.manager);
    expect(await repository.assignPositions(window)).toBe(1);
    const poll = (manager: EntityManager, after: number) => events(manager).listAfter(SCOPE, after, {}, 10);
    const { items, completeTo } = await poll(dataSource.manager, 0);
    expect(items.map(({ body }) => (JSON.parse(body) as { id: string }).id)).toEqual([event]);
    expect(await daysOf((manager) => poll(manager, 0))).toBe(1);
    // Without new events, it does not even read the event partitions.
    expect(await daysOf((manager) => poll(manager, completeTo))).toBe(0);
    expect(await daysOf((manager) => events(manager).findById(SCOPE, event))).toBe(1);
  });

  describe('for each step', () => {
    /** Maximum per step: windows of 2, 4, 8 and 16 days, and one day shared by two steps. */
    const MOST = 31;
    /** The day counts of each run of the job's step, until it moves to another step. */
    async function daysOfSteps(id: string): Promise<number[]> {
      const { manager } = dataSource;
      const job = await manager.findOneByOrFail(BacklogJobEntity, { id });
      const { step } = job;
      const days: number[] = [];
      while (job.step === step && job.status === 'running')
        days.push(await daysOf((own) => backlog(own).takeStep(txOf(own), job)));
      await jobs(manager).save(txOf(manager), job);
      return days;
    }
    const jobs = (manager: EntityManager) => new BacklogJobsRepository(manager);
    const backlog = (manager: EntityManager) => new BacklogJobs(jobs(manager), new BacklogStepsRepository());

    beforeAll(async () => {
      await database.pool.query(
        `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, created_at,
                                         delivered_at, failed_at, ended_at)
         SELECT 'dlv_old_' || status, 'whe_2', 'ptn_1', 'live', $1, 'esim.activated', 'event', status, at,
                CASE status WHEN 'delivered' THEN at END, CASE status WHEN 'failed' THEN at END, at
         FROM (VALUES ('delivered', $2::timestamptz), ('failed', $3::timestamptz)) AS old (status, at)`,
        [event, dayOf(new Date(), -110), dayOf(new Date(), -100)],
      );
    });

    it('applies to a resend', async () => {
      const tx = txOf(dataSource.manager);
      const selection = {
        ...{ endpointId: 'whe_2', since: new Date(0), until: new Date() },
        ...{ eventTypes: null, statuses: ['failed' as const] },
      };
      await jobs(tx.manager).insert(tx, {
        ...{ id: 'blg_1', kind: 'resend', step: 'search', partnerId: 'ptn_1', ...selection },
      });
      const searched = await daysOfSteps('blg_1');
      expect(searched.length).toBeGreaterThan(3);
      expect(Math.max(...searched)).toBeLessThanOrEqual(MOST);
      const read = await daysOfSteps('blg_1');
      const { rows } = await database.pool.query(`SELECT * FROM webhook_backlog_jobs WHERE id = 'blg_1'`);
      expect(rows[0]).toMatchObject({ last_success_at: dayOf(new Date(), -110), created: 1 });
      expect(read.length).toBeGreaterThan(3);
      // Each step also reads the event's day, and the days since the job started (including days ahead) for earlier
      // resends.
      expect(Math.max(...read)).toBeLessThanOrEqual(MOST + 9);
    });

    it('applies to a replay', async () => {
      const tx = txOf(dataSource.manager);
      const selection = {
        ...{ endpointId: 'whe_2', since: dayOf(new Date(), -DAYS), until: new Date() },
        ...{ eventTypes: null, statuses: ['failed' as const] },
      };
      await jobs(tx.manager).insert(tx, {
        ...{ id: 'rpl_1', kind: 'replay', step: 'count', partnerId: 'ptn_1', ...selection },
      });
      for (const ended of [{ total: 1 }, { created: 1 }]) {
        const days = await daysOfSteps('rpl_1');
        expect(await jobs(tx.manager).findReplay('rpl_1')).toMatchObject(ended);
        expect(days.length).toBeGreaterThan(3);
        // In addition, the event's day.
        expect(Math.max(...days)).toBeLessThanOrEqual(MOST + 1);
      }
    });
  });

  it('applies to the newest rows of the support lists', async () => {
    const filters = {
      ...{ status: undefined, eventType: undefined, eventId: undefined },
      ...{ statusCode: undefined, outcome: undefined },
      ...{ createdAfter: undefined, createdBefore: undefined },
    };
    const list = (manager: EntityManager, eventId?: string) =>
      deliveries(manager).list(
        { id: 'whe_1', mode: 'live' },
        { ...filters, eventId },
        { limit: eventId === undefined ? 1 : 100, cursor: undefined },
      );
    await database.pool.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status)
       SELECT 'dlv_' || n, 'whe_1', 'ptn_1', 'live', '${event}', 'esim.activated', 'event', 'pending'
       FROM generate_series(1, 5) AS n`,
    );
    expect(await daysOf((manager) => list(manager))).toBe(2);
    // The list ends there, because no delivery is older than its event, and an event's id is at most some days ahead of
    // its time.
    expect((await list(dataSource.manager, event)).items).toHaveLength(6);
    expect(await daysOf((manager) => list(manager, event))).toBeLessThanOrEqual(14);
    expect(await daysOf((manager) => list(manager, 'evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ'))).toBe(0);
  });
});
