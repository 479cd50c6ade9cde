import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { ActivationPolicy } from '../catalog/index.js';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';
import type { ProviderEsimRef } from '../providers/index.js';
import type {
  ActionFailure,
  EsimStatus,
  PendingAction,
  ProfileStatus,
  StoredPlan,
  UsageSource,
} from './esim.js';

@Entity({ name: 'esims' })
export class EsimEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ name: 'order_id', type: 'text' })
  orderId!: string;

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  @Column({ type: 'text' })
  iccid!: string;

  /** Phone number; null if the provider states none. */
  @Column({ type: 'text', nullable: true })
  msisdn!: string | null;

  /** The partner's own name for it. */
  @Column({ type: 'text', nullable: true })
  label!: string | null;

  @Column({ type: 'jsonb' })
  metadata!: Record<string, string>;

  @Column({ type: 'text' })
  status!: EsimStatus;

  /** Increases by one with each change visible to partners (D48); the database counts. */
  @Column({ type: 'int', insert: false, update: false })
  version!: number;

  @Column({ name: 'profile_status', type: 'text' })
  profileStatus!: ProfileStatus;

  @Column({ type: 'text', nullable: true })
  apn!: string | null;

  /** Sealed JSON of `InstallData`; never selected by lists. */
  @Column({ name: 'install_secrets', type: 'text', select: false })
  installSecrets!: string;

  @Column({ type: 'boolean' })
  unlimited!: boolean;

  @Column({ name: 'total_bytes', type: 'bigint', nullable: true, transformer: bigintColumn })
  totalBytes!: number | null;

  @Column({ name: 'used_bytes', type: 'bigint', transformer: bigintColumn })
  usedBytes!: number;

  @Column({ name: 'usage_as_of', type: 'timestamptz' })
  usageAsOf!: Date;

  @Column({ name: 'usage_source', type: 'text' })
  usageSource!: UsageSource;

  /** Thresholds announced in this data cycle (D24). */
  @Column({ name: 'thresholds_crossed', type: 'smallint', array: true })
  thresholdsCrossed!: number[];

  /** Whether the provider shows all of the eSIM's plans as one. */
  @Column({ type: 'boolean' })
  pooled!: boolean;

  /** The plans of the newest reading, and those that have ended since; empty while `pooled`. */
  @Column({ type: 'jsonb' })
  plans!: StoredPlan[];

  /** Number of days ordered of a package sold by the day (D60); null for a package of fixed days. */
  @Column({ type: 'int', nullable: true })
  days!: number | null;

  @Column({ name: 'validity_days', type: 'int' })
  validityDays!: number;

  @Column({ name: 'activation_policy', type: 'text' })
  activationPolicy!: ActivationPolicy;

  @Column({ name: 'install_by', type: 'timestamptz', nullable: true })
  installBy!: Date | null;

  @Column({ name: 'activated_at', type: 'timestamptz', nullable: true })
  activatedAt!: Date | null;

  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  /** When the next `esim.expiring` is due; null if none is. */
  @Column({ name: 'expiry_warning_at', type: 'timestamptz', nullable: true })
  expiryWarningAt!: Date | null;

  @Column({ type: 'text' })
  provider!: string;

  @Column({ name: 'provider_esim_id', type: 'text' })
  providerEsimId!: string;

  /** Query time of the newest applied provider reading; null before the first. */
  @Column({ name: 'read_at', type: 'timestamptz', nullable: true })
  readAt!: Date | null;

  /** Time of the newest applied top-up; null without one. */
  @Column({ name: 'topped_up_at', type: 'timestamptz', nullable: true })
  toppedUpAt!: Date | null;

  /** Time of the next poll; null in Sandbox, which is not polled. Ignored once the eSIM has ended. */
  @Column({ name: 'next_poll_at', type: 'timestamptz', nullable: true })
  nextPollAt!: Date | null;

  /** The action in progress, at most one. The order's worker carries out `replace`, the action worker all others. */
  @Column({ name: 'pending_action', type: 'text', nullable: true })
  pendingAction!: PendingAction | null;

  /** The partner's reason for the pending action; null without one. */
  @Column({ name: 'action_reason', type: 'text', nullable: true })
  actionReason!: string | null;

  /** Time at which a worker may claim the pending action; a claim moves it, and so it is also the lease. */
  @Column({ name: 'action_due_at', type: 'timestamptz', nullable: true })
  actionDueAt!: Date | null;

  /** Time at which the pending action may have been sent to the provider; null before. */
  @Column({ name: 'action_sent_at', type: 'timestamptz', nullable: true })
  actionSentAt!: Date | null;

  @Column({ name: 'action_fence', type: 'bigint', transformer: bigintColumn })
  actionFence!: number;

  /** Why the last requested action did not take effect; null if it did, and while another one is pending. */
  @Column({ name: 'action_failure', type: 'jsonb', nullable: true })
  actionFailure!: ActionFailure | null;

  /** Time of the last action that took effect. Readings soon after it may be from before it. */
  @Column({ name: 'acted_at', type: 'timestamptz', nullable: true })
  actedAt!: Date | null;

  /** Time of the partner's own revocation; null if the provider or a cancellation ended the eSIM. */
  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt!: Date | null;

  /** The order that replaces it; null without one, or if that order failed before this eSIM was canceled. */
  @Column({ name: 'replaced_by', type: 'text', nullable: true })
  replacedBy!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;
}

/** The eSIM in calls to its provider. */
export function toProviderEsim({
  providerEsimId,
  iccid,
  createdAt: issuedAt,
}: Pick<EsimEntity, 'providerEsimId' | 'iccid' | 'createdAt'>): ProviderEsimRef {
  return { providerEsimId, iccid, issuedAt };
}
