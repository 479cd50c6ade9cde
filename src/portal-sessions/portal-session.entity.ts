import { Column, CreateDateColumn, Entity, PrimaryColumn, VirtualColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { PortalScope } from '../common/scopes.js';

/** `pending`: its code is unspent; `active`: a browser holds it; `ended`: revoked, expired, or its code lapsed. */
export const PORTAL_SESSION_STATUSES = ['pending', 'active', 'ended'] as const;
export type PortalSessionStatus = (typeof PORTAL_SESSION_STATUSES)[number];

/** A session of the partner portal (D50); code and cookie are stored as hashes, which no list reads. */
@Entity({ name: 'portal_sessions' })
export class PortalSessionEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ name: 'minted_by', type: 'text' })
  mintedBy!: string;

  @Column({ name: 'actor_id', type: 'text' })
  actorId!: string;

  @Column({ name: 'actor_name', type: 'text', nullable: true })
  actorName!: string | null;

  @Column({ type: 'text', array: true })
  scopes!: PortalScope[];

  @Column({ type: 'text', array: true })
  modes!: Mode[];

  @Column({ name: 'return_url', type: 'text', nullable: true })
  returnUrl!: string | null;

  /** SHA-256 of the code; never selected. */
  @Column({ name: 'code_hash', type: 'bytea', select: false })
  codeHash!: Buffer;

  @Column({ name: 'code_expires_at', type: 'timestamptz' })
  codeExpiresAt!: Date;

  @Column({ name: 'exchanged_at', type: 'timestamptz', nullable: true })
  exchangedAt!: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;

  @Column({ name: 'expires_at', type: 'timestamptz' })
  expiresAt!: Date;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  /** Computed by the database's clock, like the cookie check (D40). */
  @VirtualColumn({
    type: 'text',
    query: (t) => `SELECT CASE
        WHEN ${t}.revoked_at IS NOT NULL OR ${t}.expires_at <= statement_timestamp()
          OR ${t}.created_at <= coalesce(p.suspended_at, '-infinity') THEN 'ended'
        WHEN ${t}.exchanged_at IS NOT NULL THEN 'active'
        WHEN ${t}.code_expires_at <= statement_timestamp() THEN 'ended' ELSE 'pending' END
      FROM partners p WHERE p.id = ${t}.partner_id`,
  })
  status!: PortalSessionStatus;
}
