import type { Pool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { newId } from '../../src/common/ids.js';
import { type AppConfig, loadConfig } from '../../src/config/index.js';
import { createDataSource, Transactions } from '../../src/infra/database/index.js';
import {
  type DeliveryState,
  type EndpointState,
  SLOW_START_STEP_MS,
} from '../../src/webhooks/delivery-rules.js';
import type { FinishedAttempt } from '../../src/webhooks/worker/attempt-result.js';
import { createTestDatabase, type TestDatabase, testEnvironment } from '../harness/index.js';

export const CAP = 8;
export const OWNER = 'worker-of-the-test';
export const EVENT = newId('evt');
const BOTH = [false, true];

export interface EndpointRow extends EndpointState {
  readonly id: string;
  readonly widenedLately?: boolean;
  readonly discards?: boolean;
}

export interface DeliveryRow extends DeliveryState {
  readonly id: string;
  readonly endpointId: string;
  readonly due?: boolean;
  readonly leased?: boolean;
}

export const IN_SERVICE = {
  enabled: true,
  deleted: false,
  blocked: false,
  consecutiveBlocks: 0,
  window: null,
};

/** Every state of an endpoint that the rules tell apart. */
export function endpointStates(
  windows: readonly (number | null)[],
  blocks: readonly number[],
): EndpointState[] {
  return BOTH.flatMap((enabled) =>
    BOTH.flatMap((deleted) =>
      BOTH.flatMap((blocked) =>
        windows.flatMap((window) =>
          blocks.map((consecutiveBlocks) => ({ enabled, deleted, blocked, window, consecutiveBlocks })),
        ),
      ),
    ),
  );
}

/** An attempt of which only what is given matters. */
export function attemptOf(
  given: Pick<FinishedAttempt, 'deliveryId' | 'endpointId' | 'fence' | 'countedAttempts' | 'outcome'>,
): FinishedAttempt {
  const answer = { statusCode: null, latencyMs: 1, error: null, phases: null, reusedConnection: false };
  const bytes = { requestHeaders: null, responseHeaders: null, responseBody: null };
  return { ...answer, ...bytes, orderId: null, traceId: null, endedAt: performance.now(), ...given };
}

export const withIds = <T extends object>(prefix: string, rows: readonly T[]): (T & { id: string })[] =>
  rows.map((row, index) => ({ ...row, id: `${prefix}_${String(index).padStart(4, '0')}` }));

/** A database with one partner and event, and rows of endpoints and deliveries in any state that the rules tell apart. */
export class DeliveryRulesBed {
  readonly transactions: Transactions;

  private constructor(
    private readonly database: TestDatabase,
    private readonly dataSource: DataSource,
    readonly config: AppConfig,
  ) {
    this.transactions = new Transactions(dataSource);
  }

  static async open(): Promise<DeliveryRulesBed> {
    const database = await createTestDatabase();
    const env = testEnvironment(database.url, { WEBHOOK_CONCURRENCY_PER_ENDPOINT: String(CAP) });
    const dataSource = await createDataSource({
      url: database.url,
      poolMax: 4,
      poolWaitMs: 20_000,
      entities: [],
      applicationName: 'test',
    }).initialize();
    await database.pool.query(`
      INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'Partner', 'active');
      INSERT INTO events (id, partner_id, mode, type, body, created_at)
      VALUES ('${EVENT}', 'ptn_1', 'sandbox', 'esim.activated', '{}', now())`);
    return new DeliveryRulesBed(database, dataSource, loadConfig(env));
  }

  get pool(): Pool {
    return this.database.pool;
  }

  get manager(): EntityManager {
    return this.dataSource.manager;
  }

  async close(): Promise<void> {
    await this.dataSource.destroy();
    await this.database.drop();
  }

  async insertEndpoints(endpoints: readonly EndpointRow[]): Promise<void> {
    await this.pool.query(
      `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret, enabled, deleted_at, blocked_until,
                                      consecutive_blocks, ramp_window, ramp_widened_at, discard_before)
       SELECT e.id, 'ptn_1', 'sandbox', 'https://partner.example', '', e.enabled, CASE WHEN e.deleted THEN now() END,
              -- a block that is over leaves its time behind
              now() + CASE WHEN e.blocked THEN interval '1 hour' ELSE interval '-1 hour' END, e."consecutiveBlocks",
              e."window", now() - CASE WHEN e."widenedLately" THEN 0 ELSE $2::int END * interval '1 millisecond',
              CASE WHEN e.discards THEN now() - interval '1 hour' END
       FROM jsonb_to_recordset($1::jsonb) AS e (id text, enabled boolean, deleted boolean, blocked boolean,
         "consecutiveBlocks" int, "window" int, "widenedLately" boolean, discards boolean)`,
      [JSON.stringify(endpoints), SLOW_START_STEP_MS],
    );
  }

  /** A delivery is given up by being older than its endpoint's `discard_before`. */
  async insertDeliveries(deliveries: readonly DeliveryRow[]): Promise<void> {
    await this.pool.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, test_body,
         counted_attempts, interruptions, next_attempt_at, lease_owner, lease_until, claimed_at, fence, created_at, ended_at)
       SELECT d.id, d."endpointId", 'ptn_1', 'sandbox', CASE WHEN d.kind <> 'test' THEN $3 END, 'esim.activated', d.kind,
              d.status,
              CASE WHEN d.kind = 'test' THEN '{}' END, d."countedAttempts", d.interruptions,
              now() + CASE WHEN d.due THEN interval '-1 minute' ELSE interval '1 hour' END,
              CASE WHEN d.leased THEN $2 END, CASE WHEN d.leased THEN now() + interval '1 hour' END,
              CASE WHEN d.leased THEN now() END, 1,
              now() - CASE WHEN d."givenUp" THEN interval '1 day' ELSE interval '10 minutes' END,
              CASE WHEN d.status NOT IN ('pending', 'discarding') THEN now() END
       FROM jsonb_to_recordset($1::jsonb) AS d (id text, "endpointId" text, kind text, status text,
         "countedAttempts" int, interruptions int, "givenUp" boolean, due boolean, leased boolean)`,
      [JSON.stringify(deliveries), OWNER, EVENT],
    );
  }

  async endpointsNow(prefix: string): Promise<Map<string, EndpointState>> {
    const { rows } = await this.pool.query<EndpointState & { id: string }>(
      `SELECT id, enabled, deleted_at IS NOT NULL AS deleted, coalesce(blocked_until > now(), false) AS blocked,
              consecutive_blocks AS "consecutiveBlocks", ramp_window AS window
       FROM webhook_endpoints WHERE id LIKE $1 || '%'`,
      [prefix],
    );
    return new Map(rows.map(({ id, ...state }) => [id, state]));
  }
}
