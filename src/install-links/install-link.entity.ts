import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { Language } from './languages.js';

/** A link to the install page of an eSIM (D63). Revoking it deletes the row; token and access code are stored as hashes. */
@Entity({ name: 'install_links' })
export class InstallLinkEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ name: 'esim_id', type: 'text' })
  esimId!: string;

  /** SHA-256 of the token; never selected. */
  @Column({ name: 'token_hash', type: 'bytea', select: false })
  tokenHash!: Buffer;

  /** Language of the page; null follows the traveler's browser. */
  @Column({ type: 'text', nullable: true })
  locale!: Language | null;

  /** SHA-256 of token and access code; null without a code. */
  @Column({ name: 'access_code_hash', type: 'bytea', nullable: true, select: false })
  accessCodeHash!: Buffer | null;

  /** Wrong access codes since the last correct one or lock. */
  @Column({ name: 'wrong_codes', type: 'int', select: false })
  wrongCodes!: number;

  /** End of the lock after too many wrong access codes; null without one. */
  @Column({ name: 'locked_until', type: 'timestamptz', nullable: true, select: false })
  lockedUntil!: Date | null;

  @Column({ name: 'opened_count', type: 'int' })
  openedCount!: number;

  @Column({ name: 'last_opened_at', type: 'timestamptz', nullable: true })
  lastOpenedAt!: Date | null;

  @Column({ name: 'expires_at', type: 'timestamptz' })
  expiresAt!: Date;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
