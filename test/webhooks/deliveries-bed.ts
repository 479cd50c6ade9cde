import type { Pool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { ENTITIES } from '../../src/apps/process-resources.js';
import { newId } from '../../src/common/ids.js';
import { type AppConfig, loadConfig } from '../../src/config/index.js';
import { createDataSource, Transactions } from '../../src/infra/database/index.js';
import type { DeliveryKind, StoredDeliveryStatus } from '../../src/webhooks/delivery.js';
import {
  afterAttempt,
  afterAttemptOfDiscarded,
  type EndpointState,
} from '../../src/webhooks/delivery-rules.js';
import type { FinishedAttempt } from '../../src/webhooks/worker/attempt-result.js';
import {
  type AttemptOutcomeRow,
  DeliveriesRepository,
} from '../../src/webhooks/worker/deliveries.repository.js';
import { createTestDatabase, type TestDatabase, testEnvironment } from '../harness/index.js';

export const OWNER = 'worker-of-the-test';
/** The fence of the leases of all endpoints, and of deliveries started under them. */
export const FENCE = '7';
export const EVENT = newId('evt');
const BOTH = [false, true];

export interface EndpointRow extends EndpointState {
  readonly id: string;
  readonly discards?: boolean;
}

export interface DeliveryRow {
  readonly id: string;
  readonly endpointId: string;
  readonly kind: DeliveryKind;
  readonly status: StoredDeliveryStatus;
  readonly countedAttempts: number;
  readonly interruptions: number;
  readonly givenUp: boolean;
  readonly due?: boolean;
  /** The fence under which an attempt was started. */
  readonly startedFence?: number | null;
}

export const IN_SERVICE: EndpointState = {
  enabled: true,
  deleted: false,
  blocked: false,
  consecutiveBlocks: 0,
};

/** All endpoint states that the rules distinguish. */
export function endpointStates(): EndpointState[] {
  return BOTH.flatMap((enabled) =>
    BOTH.flatMap((deleted) => BOTH.map((blocked) => ({ enabled, deleted, blocked, consecutiveBlocks: 0 }))),
  );
}

/** An attempt with defaults for everything that is not given. */
export function attemptOf(
  given: Pick<FinishedAttempt, 'deliveryId' | 'endpointId' | 'fence' | 'countedAttempts' | 'outcome'> &
    Partial<FinishedAttempt>,
): FinishedAttempt {
  const answer = { statusCode: null, latencyMs: 1, error: null, phases: null, reusedConnection: false };
  const bytes = { requestHeaders: null, responseHeaders: null, responseBody: null };
  const state = { kind: 'event', interruptions: 0 } as const;
  return {
    ...answer,
    ...bytes,
    ...state,
    orderId: null,
    traceId: null,
    endedAt: performance.now(),
    ...given,
  };
}

/** Applies the delivery rules to the attempt. */
export function judged(config: AppConfig, attempt: FinishedAttempt): AttemptOutcomeRow {
  const after = afterAttempt(config.webhooks, attempt, attempt.outcome);
  return { attempt, after, afterGivenUp: afterAttemptOfDiscarded(config.webhooks, attempt, attempt.outcome) };
}

export const withIds = <T extends object>(prefix: string, rows: readonly T[]): (T & { id: string })[] =>
  rows.map((row, index) => ({ ...row, id: `${prefix}_${String(index).padStart(4, '0')}` }));

/** A database with one partner and event, endpoints leased by `OWNER`, and deliveries in any state. */
export class DeliveriesBed {
  readonly transactions: Transactions;

  private constructor(
    private readonly database: TestDatabase,
    private readonly dataSource: DataSource,
    readonly config: AppConfig,
  ) {
    this.transactions = new Transactions(dataSource);
  }

  static async open(): Promise<DeliveriesBed> {
    const database = await createTestDatabase();
    const dataSource = await createDataSource({
      url: database.url,
      poolMax: 4,
      poolWaitMs: 20_000,
      entities: ENTITIES,
      applicationName: 'test',
    }).initialize();
    await database.pool.query(`
      INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'Partner', 'active');
      INSERT INTO events (id, partner_id, mode, type, body, created_at)
      VALUES ('${EVENT}', 'ptn_1', 'sandbox', 'esim.activated', '{}', now())`);
    return new DeliveriesBed(database, dataSource, loadConfig(testEnvironment(database.url)));
  }

  get pool(): Pool {
    return this.database.pool;
  }

  get manager(): EntityManager {
    return this.dataSource.manager;
  }

  get deliveries(): DeliveriesRepository {
    return new DeliveriesRepository(this.manager);
  }

  async close(): Promise<void> {
    await this.dataSource.destroy();
    await this.database.drop();
  }

  async insertEndpoints(endpoints: readonly EndpointRow[]): Promise<void> {
    await this.pool.query(
      `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, deleted_at, blocked_until,
                                      consecutive_blocks, discard_before)
       SELECT e.id, 'ptn_1', 'sandbox', 'https://partner.example', '', e.enabled, CASE WHEN e.deleted THEN now() END,
              -- a block that is over leaves its time behind
              now() + CASE WHEN e.blocked THEN interval '1 hour' ELSE interval '-1 hour' END, e."consecutiveBlocks",
              CASE WHEN e.discards THEN now() - interval '1 hour' END
       FROM jsonb_to_recordset($1::jsonb) AS e (id text, enabled boolean, deleted boolean, blocked boolean,
         "consecutiveBlocks" int, discards boolean)`,
      [JSON.stringify(endpoints)],
    );
    await this.pool.query(
      `INSERT INTO webhook_endpoint_leases (endpoint_id, owner, fence, until)
       SELECT id, $2, $3, now() + interval '1 hour' FROM unnest($1::text[]) AS id`,
      [endpoints.map(({ id }) => id), OWNER, FENCE],
    );
  }

  /** A delivery counts as discarded when it is older than its endpoint's `discard_before`. */
  async insertDeliveries(deliveries: readonly DeliveryRow[]): Promise<void> {
    await this.pool.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, test_body,
         counted_attempts, interruptions, next_attempt_at, started_at, started_fence, created_at, ended_at)
       SELECT d.id, d."endpointId", 'ptn_1', 'sandbox', CASE WHEN d.kind <> 'test' THEN $2 END, 'esim.activated', d.kind,
              d.status,
              CASE WHEN d.kind = 'test' THEN '{}' END, d."countedAttempts", d.interruptions,
              now() + CASE WHEN d.due THEN interval '-1 minute' ELSE interval '1 hour' END,
              CASE WHEN d."startedFence" IS NOT NULL THEN now() - interval '10 s' END, d."startedFence",
              now() - CASE WHEN d."givenUp" THEN interval '1 day' ELSE interval '10 minutes' END,
              CASE WHEN d.status NOT IN ('pending', 'discarding') THEN now() END
       FROM jsonb_to_recordset($1::jsonb) AS d (id text, "endpointId" text, kind text, status text,
         "countedAttempts" int, interruptions int, "givenUp" boolean, due boolean, "startedFence" bigint)`,
      [JSON.stringify(deliveries), EVENT],
    );
  }
}
