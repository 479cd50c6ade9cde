import { Column, CreateDateColumn, Entity, PrimaryColumn, VirtualColumn } from 'typeorm';
import type { DeliveryEventType, DeliveryKind, DeliveryStatus, StoredDeliveryStatus } from './delivery.js';

/** One body owed to one endpoint, with one id for all its attempts (D30). */
@Entity({ name: 'webhook_deliveries' })
export class WebhookDeliveryEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'endpoint_id', type: 'text' })
  endpointId!: string;

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

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @Column({ name: 'delivered_at', type: 'timestamptz', nullable: true })
  deliveredAt!: Date | null;
}

/** `held` and `discarded` are derived, so that a switch writes one row and not a backlog (D32). */
export function deliveryStatus(delivery: WebhookDeliveryEntity): DeliveryStatus {
  if (delivery.status !== 'pending') return delivery.status;
  if (delivery.givenUp) return 'discarded';
  return delivery.endpointEnabled ? 'pending' : 'held';
}
