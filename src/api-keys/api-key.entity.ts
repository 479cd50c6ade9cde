import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn, VirtualColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { KeyScope } from '../common/scopes.js';
import { bigintColumn } from '../infra/database/index.js';

/** A replaced key stays `active` during its grace period. */
export const KEY_STATUSES = ['active', 'revoked', 'expired'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

@Entity({ name: 'api_keys' })
export class ApiKeyEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ type: 'text', nullable: true })
  name!: string | null;

  /** SHA-256 of the whole key (D12); never selected. */
  @Column({ type: 'bytea', select: false })
  hash!: Buffer;

  @Column({ type: 'text' })
  last4!: string;

  /** Null allows every address (D15). */
  @Column({ name: 'allowed_cidrs', type: 'cidr', array: true, nullable: true })
  allowedCidrs!: string[] | null;

  /** Null holds every scope, including future ones (D62). */
  @Column({ type: 'text', array: true, nullable: true })
  scopes!: KeyScope[] | null;

  /** Per UTC day, in minor units; null for no limit. */
  @Column({ name: 'spend_limit_amount', type: 'bigint', nullable: true, transformer: bigintColumn })
  spendLimitAmount!: number | null;

  @Column({ name: 'spend_limit_currency', type: 'text', nullable: true })
  spendLimitCurrency!: string | null;

  /** The key at the start of the chain of rotations, whose spending this key continues; null for that key itself. */
  @Column({ name: 'first_key_id', type: 'text', nullable: true })
  firstKeyId!: string | null;

  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;

  @Column({ name: 'replaced_by', type: 'text', nullable: true })
  replacedBy!: string | null;

  @Column({ name: 'last_used_at', type: 'timestamptz', nullable: true })
  lastUsedAt!: Date | null;

  /** A portal user, or the name of an admin token; null for keys created before this column existed. */
  @Column({ name: 'created_by', type: 'text', nullable: true })
  createdBy!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;

  /** Computed by the database's clock, like the key check itself (D40). */
  @VirtualColumn({
    type: 'text',
    query: (t) => `CASE WHEN ${t}.revoked_at IS NOT NULL THEN 'revoked'
                        WHEN ${t}.expires_at <= statement_timestamp() THEN 'expired' ELSE 'active' END`,
  })
  status!: KeyStatus;
}
