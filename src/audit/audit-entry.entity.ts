import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

@Entity({ name: 'audit_log' })
export class AuditEntryEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  actor!: string;

  @Column({ name: 'portal_user', type: 'text', nullable: true })
  portalUser!: string | null;

  @Column({ type: 'text' })
  action!: string;

  @Column({ name: 'partner_id', type: 'text', nullable: true })
  partnerId!: string | null;

  @Column({ name: 'subject_id', type: 'text' })
  subjectId!: string;

  @Column({ type: 'jsonb' })
  details!: Record<string, string | number | boolean | null | string[]>;

  @Column({ name: 'request_id', type: 'text', nullable: true })
  requestId!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
