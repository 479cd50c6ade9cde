import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';
import type { EventType } from '../events/index.js';

/** What a replay may repeat; what is still owed is sent anyway. */
export const REPLAYABLE_STATUSES = ['delivered', 'failed', 'discarded'] as const;
export type ReplayableStatus = (typeof REPLAYABLE_STATUSES)[number];

export const REPLAY_STATUSES = ['running', 'completed', 'canceled'] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

/** A job that sends the events of a time again, as new deliveries of the same ids and bytes (D33). */
@Entity({ name: 'webhook_replays' })
export class WebhookReplayEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'endpoint_id', type: 'text' })
  endpointId!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  status!: ReplayStatus;

  @Column({ type: 'timestamptz' })
  since!: Date;

  @Column({ type: 'timestamptz' })
  until!: Date;

  /** Null means every type. */
  @Column({ name: 'event_types', type: 'text', array: true, nullable: true })
  eventTypes!: EventType[] | null;

  @Column({ type: 'text', array: true })
  statuses!: ReplayableStatus[];

  /** Deliveries that matched when the job began; it grows while they are chosen. */
  @Column({ type: 'int' })
  total!: number;

  /** What it repeats is still being chosen. */
  @Column({ type: 'boolean' })
  choosing!: boolean;

  /** Deliveries made so far. An ended replay that has fewer than `total` found the rest dropped, or was canceled. */
  @Column({ type: 'int' })
  created!: number;

  /** When the last deliveries were made, or a turn came to nothing: whose was longest ago is next. */
  @Column({ name: 'advanced_at', type: 'timestamptz', nullable: true })
  advancedAt!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @Column({ name: 'ended_at', type: 'timestamptz', nullable: true })
  endedAt!: Date | null;
}
