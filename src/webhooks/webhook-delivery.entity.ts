import { Column, CreateDateColumn, Entity, PrimaryColumn, VirtualColumn } from 'typeorm';
import { newId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type {
  AttemptOutcome,
  DeliveryEventType,
  DeliveryKind,
  DeliveryStatus,
  StoredDeliveryStatus,
} from './delivery.js';

/** One body owed to one endpoint, with one id for all its attempts (D30). */
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

  /** Null for a test, which is no event. */
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

  /** Given up by one row of the endpoint (D32, DELETE); the worker writes it down later. */
  @VirtualColumn({
    type: 'boolean',
    query: (alias) =>
      `SELECT coalesce(${alias}.created_at < w.discard_before, false)
       FROM webhook_endpoints w WHERE w.id = ${alias}.endpoint_id`,
  })
  givenUp!: boolean;

  /** Attempts made, interrupted ones included. */
  @Column({ name: 'attempt_count', type: 'int' })
  attemptCount!: number;

  @Column({ name: 'next_attempt_at', type: 'timestamptz', nullable: true })
  nextAttemptAt!: Date | null;

  /** Of the attempt under way, or of one whose worker has died; see `inFlight`. */
  @Column({ name: 'started_at', type: 'timestamptz', nullable: true })
  startedAt!: Date | null;

  @VirtualColumn({ type: 'boolean', query: inFlight })
  inFlight!: boolean;

  /** Of the last attempt, like the four below; null before the first. */
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

  /** When the row left what is open: null for what is owed or under way. */
  @Column({ name: 'ended_at', type: 'timestamptz', nullable: true })
  endedAt!: Date | null;
}

/** `held` and `discarded` are derived, so that a switch writes one row and not a backlog (D32). */
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
 * The part of delivery ids that one statement's rows share: prefix, time and one random character. The time is the
 * database's, or of an id that was made by it: a delivery that has ended is looked for around it.
 */
export function deliveryIdStem(at: Date): string {
  return newId('dlv', at.getTime()).slice(0, 15);
}

/**
 * SQL that completes a stem, different for every row: hexadecimal digits are Crockford digits too, so the result
 * is a well-formed ULID (D10). The first half of a UUID holds fixed bits; the last 15 digits are all random.
 */
export function deliveryIdSql(stem: string): string {
  return `${stem} || upper(right(replace(gen_random_uuid()::text, '-', ''), 15))`;
}

/** The statuses of the partition of what is open; named in a statement, they keep its plan to that partition. */
export const IS_OPEN = `status IN ('pending', 'discarding')`;
/** Those of the partitions by mode and day. */
export const HAS_ENDED = `status IN ('delivered', 'failed', 'discarded')`;

/**
 * Of a delivery `d` that is pending, and its endpoint `w`: it is not given up (D32). What is made after a discard is due
 * after it, and to say so lets the index of what is due be read from there, not through the backlog that was given up.
 * A resend that did not see a discard of the same moment is due before it: it is sent when the discard is forgotten.
 */
export const IS_KEPT = `d.next_attempt_at >= coalesce(w.discard_before, '-infinity')
  AND (w.discard_before IS NULL OR d.created_at >= w.discard_before)`;

/** SQL of a delivery: its endpoint's owner has an attempt of it under way. */
function inFlight(alias: string): string {
  return `SELECT EXISTS (SELECT FROM webhook_endpoint_leases l
    WHERE l.endpoint_id = ${alias}.endpoint_id AND l.fence = ${alias}.started_fence AND l.until > statement_timestamp())`;
}

/** The same of a delivery `d`. */
export const IN_FLIGHT = `(${inFlight('d')})`;

/** Columns that a delivery keeps when it is given up. */
const GIVEN_UP_COLUMNS = `id, endpoint_id, partner_id, mode, event_id, event_type, kind, test_body, replay_id,
  attempt_count, counted_attempts, interruptions, created_at, last_outcome, last_status_code, last_latency_ms,
  last_error, last_started_at`;

/** SQL behind `WITH given_up AS (DELETE FROM webhook_deliveries …`, closing it: what ends leaves what is open for its day. */
export const STORE_GIVEN_UP = `RETURNING ${GIVEN_UP_COLUMNS})
  INSERT INTO webhook_deliveries (${GIVEN_UP_COLUMNS}, status, ended_at)
  SELECT ${GIVEN_UP_COLUMNS}, 'discarded', statement_timestamp() FROM given_up`;
