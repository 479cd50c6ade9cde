import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** What the portal team and support are told about without asking (`GET /alerts`). */
export const ALERT_TYPES = [
  'endpoint.blocked',
  'endpoint.disabled',
  'balance.low',
  'key.expiring',
  'order.needs_review',
  'topup.needs_review',
] as const;
export type AlertType = (typeof ALERT_TYPES)[number];

@Entity({ name: 'alerts' })
export class AlertEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  type!: AlertType;

  @Column({ name: 'partner_id', type: 'text', nullable: true })
  partnerId!: string | null;

  @Column({ name: 'subject_id', type: 'text' })
  subjectId!: string;

  @Column({ type: 'jsonb' })
  details!: Record<string, string | number | boolean | null>;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
