import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { earliestOf } from '../common/clock.js';
import type { Mode } from '../common/mode.js';
import type { EsimEntity } from '../esims/index.js';
import { bigintColumn } from '../infra/database/index.js';
import {
  type EsimPurchasesRepository,
  type FailureCode,
  type ProviderTopupRequest,
  unitCostOf,
} from '../providers/index.js';

/** As for orders (D22): a provider that says nothing leaves `processing`; the last two are final. */
export const TOPUP_STATUSES = ['pending', 'processing', 'completed', 'failed'] as const;
export type TopupStatus = (typeof TOPUP_STATUSES)[number];

@Entity({ name: 'topups' })
export class TopupEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ name: 'esim_id', type: 'text' })
  esimId!: string;

  @Column({ type: 'text' })
  iccid!: string;

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  @Column({ type: 'text' })
  status!: TopupStatus;

  /** Grows by one with each change that a partner can see (D48); the database counts. */
  @Column({ type: 'int', insert: false, update: false })
  version!: number;

  @Column({ name: 'price_amount', type: 'bigint', transformer: bigintColumn })
  priceAmount!: number;

  @Column({ type: 'text' })
  currency!: string;

  /** What the package added when it was sold; null for one that adds days only. */
  @Column({ name: 'data_added_bytes', type: 'bigint', nullable: true, transformer: bigintColumn })
  dataAddedBytes!: number | null;

  @Column({ name: 'validity_added_days', type: 'int' })
  validityAddedDays!: number;

  /** The partner's own id, unique per partner and mode for ever; orders have theirs apart. */
  @Column({ type: 'text', nullable: true })
  reference!: string | null;

  @Column({ type: 'jsonb' })
  metadata!: Record<string, string>;

  @Column({ type: 'text' })
  provider!: string;

  /** D19: fixed before the first provider call and used by every one. */
  @Column({ name: 'provider_reference', type: 'text' })
  providerReference!: string;

  @Column({ name: 'upstream_package_id', type: 'text' })
  upstreamPackageId!: string;

  /** Millionths of the currency's unit; null when nobody charges for it. */
  @Column({ name: 'unit_cost_micros', type: 'bigint', nullable: true, transformer: bigintColumn })
  unitCostMicros!: number | null;

  @Column({ name: 'unit_cost_currency', type: 'text', nullable: true })
  unitCostCurrency!: string | null;

  /** The last placement that may have taken effect at the provider; null when none has ever left. */
  @Column({ name: 'upstream_placed_at', type: 'timestamptz', nullable: true })
  upstreamPlacedAt!: Date | null;

  @Column({ name: 'failure_code', type: 'text', nullable: true })
  failureCode!: FailureCode | null;

  @Column({ name: 'failure_reason', type: 'text', nullable: true })
  failureReason!: string | null;

  /** Times that a worker took the top-up up. */
  @Column({ type: 'int' })
  attempts!: number;

  /** Class of what the last look went wrong with; null when the provider answered. */
  @Column({ name: 'last_error', type: 'text', nullable: true })
  lastError!: string | null;

  /** When a worker is to look at the top-up next; null when nothing is owed. */
  @Column({ name: 'next_attempt_at', type: 'timestamptz', nullable: true })
  nextAttemptAt!: Date | null;

  @Column({ name: 'lease_until', type: 'timestamptz', nullable: true })
  leaseUntil!: Date | null;

  @Column({ type: 'bigint', transformer: bigintColumn })
  fence!: number;

  @Column({ name: 'accepted_request_id', type: 'text' })
  acceptedRequestId!: string;

  /** Of the call that accepted it (D53); null when that was not traced. */
  @Column({ type: 'text', nullable: true })
  traceparent!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;

  @Column({ name: 'completed_at', type: 'timestamptz', nullable: true })
  completedAt!: Date | null;

  @Column({ name: 'failed_at', type: 'timestamptz', nullable: true })
  failedAt!: Date | null;
}

export interface TopupFilters {
  readonly esimId?: string | undefined;
  readonly status?: TopupStatus | undefined;
  readonly reference?: string | undefined;
}

/** The top-up as every provider call about it names it: fixed at acceptance (D19). */
export function toProviderTopupRequest(
  topup: TopupEntity,
  esim: EsimEntity,
  purchases: EsimPurchasesRepository,
): ProviderTopupRequest {
  return {
    reference: topup.providerReference,
    esim: { providerEsimId: esim.providerEsimId, iccid: esim.iccid, issuedAt: esim.createdAt },
    packageId: topup.packageId,
    upstreamPackageId: topup.upstreamPackageId,
    unitCost: unitCostOf(topup),
    // What may have been bought before a restore is older than the top-up that was accepted again (D54).
    acceptedAt: earliestOf(topup.createdAt, topup.upstreamPlacedAt),
    otherPurchases: () => purchases.getBesides(topup.providerReference),
  };
}
