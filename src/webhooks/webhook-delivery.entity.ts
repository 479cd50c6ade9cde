import { Column, CreateDateColumn, Entity, PrimaryColumn, VirtualColumn } from 'typeorm';
import { newId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type {
  AttemptOutcome,
  AttemptPhase,
  DeliveryEventType,
  DeliveryKind,
  DeliveryStatus,
  StoredDeliveryStatus,
} from './delivery.js';

/** One body to send to one endpoint, with one id for all its attempts (D30). */
@Entity({ name: 'webhook_deliveries' })
export class WebhookDeliveryEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'endpoint_id', type: 'text' })
  endpointId!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  /** Null for a test, which is not an event. */
  @Column({ name: 'event_id', type: 'text', nullable: true })
  eventId!: string | null;

  @Column({ name: 'event_type', type: 'text' })
  eventType!: DeliveryEventType;

  @Column({ type: 'text' })
  kind!: DeliveryKind;

  @Column({ type: 'text' })
  status!: StoredDeliveryStatus;

  @VirtualColumn({
    type: 'boolean',
    query: (alias) => `SELECT w.enabled FROM webhook_endpoints w WHERE w.id = ${alias}.endpoint_id`,
  })
  endpointEnabled!: boolean;

  /** Discarded by the endpoint's row (D32, DELETE); the worker updates this delivery's row later. */
  @VirtualColumn({
    type: 'boolean',
    query: (alias) =>
      `SELECT coalesce(${alias}.created_at < w.discard_before, false)
       FROM webhook_endpoints w WHERE w.id = ${alias}.endpoint_id`,
  })
  givenUp!: boolean;

  /** Attempts made, including interrupted ones. */
  @Column({ name: 'attempt_count', type: 'int' })
  attemptCount!: number;

  @Column({ name: 'next_attempt_at', type: 'timestamptz', nullable: true })
  nextAttemptAt!: Date | null;

  /** Start of the attempt in flight, or of one whose worker has died; see `inFlight`. */
  @Column({ name: 'started_at', type: 'timestamptz', nullable: true })
  startedAt!: Date | null;

  /** Phase of the attempt in flight; null while the attempt is too young for one. */
  @Column({ name: 'current_phase', type: 'text', nullable: true })
  currentPhase!: AttemptPhase | null;

  @VirtualColumn({ type: 'boolean', query: inFlight })
  inFlight!: boolean;

  /** Describes the last attempt, as do the four columns below; null before the first. */
  @Column({ name: 'last_outcome', type: 'text', nullable: true })
  lastOutcome!: AttemptOutcome | null;

  @Column({ name: 'last_status_code', type: 'smallint', nullable: true })
  lastStatusCode!: number | null;

  @Column({ name: 'last_latency_ms', type: 'int', nullable: true })
  lastLatencyMs!: number | null;

  @Column({ name: 'last_error', type: 'text', nullable: true })
  lastError!: string | null;

  @Column({ name: 'last_started_at', type: 'timestamptz', nullable: true })
  lastStartedAt!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @Column({ name: 'delivered_at', type: 'timestamptz', nullable: true })
  deliveredAt!: Date | null;

  /** Time at which the delivery ended; null while it is pending or in flight. */
  @Column({ name: 'ended_at', type: 'timestamptz', nullable: true })
  endedAt!: Date | null;
}

/**
 * Derives `held` and `discarded`, so that disabling an endpoint or discarding its backlog writes only one row (D32).
 */
export function deliveryStatus(delivery: WebhookDeliveryEntity): DeliveryStatus {
  if (delivery.status === 'discarding') return 'discarded';
  if (delivery.status !== 'pending') return delivery.status;
  if (delivery.givenUp) return 'discarded';
  return delivery.endpointEnabled ? 'pending' : 'held';
}

const ofEndpoint = (condition: string): string =>
  `EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.id = t.endpoint_id AND ${condition})`;
const GIVEN_UP = ofEndpoint('t.created_at < w.discard_before');

/** The rules of `deliveryStatus` as SQL over a delivery `t`. */
export const STATUS_CONDITIONS: Readonly<Record<DeliveryStatus, string>> = {
  pending: `(t.status = 'pending' AND ${ofEndpoint('w.enabled')} AND NOT ${GIVEN_UP})`,
  held: `(t.status = 'pending' AND ${ofEndpoint('NOT w.enabled')} AND NOT ${GIVEN_UP})`,
  discarded: `(t.status IN ('discarded', 'discarding') OR t.status = 'pending' AND ${GIVEN_UP})`,
  delivered: `t.status = 'delivered'`,
  failed: `t.status = 'failed'`,
};

/**
 * The part of delivery ids that all rows of one statement share: prefix, time and one random character. The time comes
 * from the database's clock, or from an id made with it, because lookups of an ended delivery search around that time.
 */
export function deliveryIdStem(at: Date): string {
  return newId('dlv', at.getTime()).slice(0, 15);
}

/**
 * SQL that completes a stem differently for every row. Hexadecimal digits are also Crockford digits, so the result is a
 * well-formed ULID (D10). The first half of a UUID holds fixed bits; the last 15 digits are all random.
 */
export function deliveryIdSql(stem: string): string {
  return `${stem} || upper(right(replace(gen_random_uuid()::text, '-', ''), 15))`;
}

/** Statuses in the partition of open deliveries; naming them in a statement limits its plan to that partition. */
export const IS_OPEN = `status IN ('pending', 'discarding')`;
/** Statuses in the partitions by mode and day. */
export const HAS_ENDED = `status IN ('delivered', 'failed', 'discarded')`;

/**
 * Condition that a pending delivery `d` of an endpoint `w` is not discarded (D32). Deliveries created after a discard
 * are due after it. A scan of the due index can therefore start there, instead of reading through the discarded
 * backlog. A resend that did not see a simultaneous discard is due before it, and is sent when the discard is removed.
 */
export const IS_KEPT = `d.next_attempt_at >= coalesce(w.discard_before, '-infinity')
  AND (w.discard_before IS NULL OR d.created_at >= w.discard_before)`;

/** SQL condition that the owner of the delivery's endpoint has an attempt in flight. */
function inFlight(alias: string): string {
  return `SELECT EXISTS (SELECT FROM webhook_endpoint_leases l
    WHERE l.endpoint_id = ${alias}.endpoint_id AND l.fence = ${alias}.started_fence AND l.until > statement_timestamp())`;
}

/** The same condition for a delivery `d`. */
export const IN_FLIGHT = `(${inFlight('d')})`;

/** Columns that a delivery keeps when it is discarded. */
const GIVEN_UP_COLUMNS = `id, endpoint_id, partner_id, mode, event_id, event_type, kind, test_body, replay_id,
  attempt_count, counted_attempts, interruptions, created_at, last_outcome, last_status_code, last_latency_ms,
  last_error, last_started_at`;

/**
 * SQL that closes `WITH given_up AS (DELETE FROM webhook_deliveries …` and moves the ended deliveries to their days.
 */
export const STORE_GIVEN_UP = `RETURNING ${GIVEN_UP_COLUMNS})
  INSERT INTO webhook_deliveries (${GIVEN_UP_COLUMNS}, status, ended_at)
  SELECT ${GIVEN_UP_COLUMNS}, 'discarded', statement_timestamp() FROM given_up`;
