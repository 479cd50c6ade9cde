import { Column, CreateDateColumn, Entity, PrimaryColumn, VirtualColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { EventType } from '../events/index.js';
import type { RowCursor } from '../infra/database/index.js';

/** Statuses that a replay can repeat. Pending and held deliveries are sent anyway. */
export const REPLAYABLE_STATUSES = ['delivered', 'failed', 'discarded'] as const;
export type ReplayableStatus = (typeof REPLAYABLE_STATUSES)[number];

export const BACKLOG_JOB_STATUSES = ['running', 'completed', 'canceled'] as const;
export type BacklogJobStatus = (typeof BACKLOG_JOB_STATUSES)[number];

/** `release` and `resend` settle the backlog when an endpoint is enabled (D32). A partner starts a `replay` (D33). */
export type BacklogJobKind = 'release' | 'resend' | 'replay';

/** `search` finds the last 2xx, `count` counts the events to repeat, `await` waits for the outcomes of a replay. */
export type BacklogStep = 'release' | 'search' | 'resend' | 'count' | 'repeat' | 'await';

/** A job that processes an endpoint's deliveries one page at a time. */
@Entity({ name: 'webhook_backlog_jobs' })
export class BacklogJobEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  kind!: BacklogJobKind;

  @Column({ name: 'endpoint_id', type: 'text' })
  endpointId!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @VirtualColumn({ type: 'text', query: (alias) => ofEndpoint(alias, 'mode') })
  mode!: Mode;

  @VirtualColumn({ type: 'boolean', query: (alias) => ofEndpoint(alias, 'deleted_at IS NOT NULL') })
  endpointDeleted!: boolean;

  @Column({ type: 'text' })
  status!: BacklogJobStatus;

  @Column({ type: 'timestamptz' })
  since!: Date;

  @Column({ type: 'timestamptz' })
  until!: Date;

  /** Null means every type. */
  @Column({ name: 'event_types', type: 'text', array: true, nullable: true })
  eventTypes!: EventType[] | null;

  @Column({ type: 'text', array: true })
  statuses!: ReplayableStatus[];

  @Column({ type: 'text' })
  step!: BacklogStep;

  /** The last delivery that the step has read; null at its beginning. */
  @Column({ type: 'jsonb', nullable: true })
  cursor!: RowCursor | null;

  /** Number of matching deliveries; grows while the job counts. */
  @Column({ type: 'int' })
  total!: number;

  /** Deliveries created so far. If a completed replay has fewer than `total`, the other events had been dropped. */
  @Column({ type: 'int' })
  created!: number;

  /** The job has used its rate up to this time. */
  @Column({ name: 'paced_to', type: 'timestamptz', nullable: true })
  pacedTo!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @Column({ name: 'ended_at', type: 'timestamptz', nullable: true })
  endedAt!: Date | null;
}

function ofEndpoint(alias: string, expression: string): string {
  return `SELECT ${expression} FROM webhook_endpoints w WHERE w.id = ${alias}.endpoint_id`;
}
