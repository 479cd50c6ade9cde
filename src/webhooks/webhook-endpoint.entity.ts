import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn, VirtualColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { NOW } from '../infra/database/index.js';
import type { SignatureScheme } from './signature.js';
import type { Subscription } from './subscriptions.js';

/** A URL that receives a partner's events in one mode (spec section 2). */
@Entity({ name: 'webhook_endpoints' })
export class WebhookEndpointEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ type: 'text' })
  url!: string;

  @Column({ type: 'text', nullable: true })
  description!: string | null;

  /** Null means the document's types (D58). */
  @Column({ name: 'event_types', type: 'text', array: true, nullable: true })
  eventTypes!: Subscription[] | null;

  /** Percentages of `esim.usage.level`, ascending (D58); null receives none. */
  @Column({ name: 'usage_levels', type: 'smallint', array: true, nullable: true })
  usageLevels!: number[] | null;

  /** The document's scheme, and any requested in addition (D49). */
  @Column({ name: 'signature_schemes', type: 'text', array: true })
  signatureSchemes!: SignatureScheme[];

  /** Sealed with the endpoint's id as owner (D37). */
  @Column({ type: 'text' })
  secret!: string;

  @Column({ name: 'previous_secret', type: 'text', nullable: true })
  previousSecret!: string | null;

  @Column({ name: 'previous_secret_until', type: 'timestamptz', nullable: true })
  previousSecretUntil!: Date | null;

  /**
   * True within a rotation's grace period by the database's clock: webhooks are signed with both secrets (D29, D40).
   */
  @VirtualColumn({
    type: 'boolean',
    query: (alias) => `coalesce(${alias}.previous_secret_until > statement_timestamp(), false)`,
  })
  rotating!: boolean;

  @Column({ type: 'boolean' })
  enabled!: boolean;

  @Column({ name: 'blocked_until', type: 'timestamptz', nullable: true })
  blockedUntil!: Date | null;

  /** True during a block, which ends by itself by the database's clock (D31, D40). */
  @VirtualColumn({
    type: 'boolean',
    query: (alias) => `${alias}.enabled AND coalesce(${alias}.blocked_until > statement_timestamp(), false)`,
  })
  blocked!: boolean;

  @Column({ name: 'consecutive_blocks', type: 'int' })
  consecutiveBlocks!: number;

  /** Start of the slow start (D31, D32); null at full speed. */
  @Column({ name: 'slow_start_since', type: 'timestamptz', nullable: true })
  slowStartSince!: Date | null;

  /** Pending deliveries created before this are discarded. */
  @Column({ name: 'discard_before', type: 'timestamptz', nullable: true, select: false })
  discardBefore!: Date | null;

  @Column({ name: 'disabled_reason', type: 'text', nullable: true })
  disabledReason!: DisabledReason | null;

  /** Null while the endpoint is enabled, and if it was disabled before this column existed. */
  @Column({ name: 'disabled_at', type: 'timestamptz', nullable: true })
  disabledAt!: Date | null;

  @Column({ name: 'deleted_at', type: 'timestamptz', nullable: true })
  deletedAt!: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;
}

/** `takesAttempts` as SQL over an endpoint `w` (D31, D32). */
export const TAKES_ATTEMPTS = `w.enabled AND w.deleted_at IS NULL AND (w.blocked_until IS NULL OR w.blocked_until <= ${NOW})`;

/** SQL columns of an endpoint `w` that an attempt needs. Columns of `TargetRow`. */
export const TARGET_COLUMNS = `w.url, w.secret,
  CASE WHEN w.previous_secret_until > ${NOW} THEN w.previous_secret END AS previous_secret,
  'standard' = ANY (w.signature_schemes) AS standard`;

export interface TargetRow {
  url: string;
  secret: string;
  previous_secret: string | null;
  standard: boolean;
}

/** Where and how an endpoint's webhooks are sent. */
export interface WebhookTarget {
  readonly url: string;
  /** Sealed signing secrets, newest first (D29). */
  readonly sealedSecrets: readonly string[];
  /** Whether the headers of Standard Webhooks are added (D49). */
  readonly standard: boolean;
}

export function toTarget({ url, secret, previous_secret: previous, standard }: TargetRow): WebhookTarget {
  return { url, sealedSecrets: previous === null ? [secret] : [secret, previous], standard };
}

/** Disabled by the service after too many blocks (D31), or by the switch (D32). */
export type DisabledReason = 'consecutive_blocks' | 'manual';

export const ENDPOINT_STATUSES = ['enabled', 'blocked', 'disabled'] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

export function endpointStatus(endpoint: WebhookEndpointEntity): EndpointStatus {
  if (!endpoint.enabled) return 'disabled';
  return endpoint.blocked ? 'blocked' : 'enabled';
}
