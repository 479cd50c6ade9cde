import { Column, CreateDateColumn, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { earliestOf } from '../common/clock.js';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';
import { type FailureCode, type PlacementKind, unitCostOf } from '../providers/index.js';

/** The columns that `orders` and `topups` have in common. */
export abstract class Purchase {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  abstract status: string;

  /** Grows by one with each change that a partner can see (D48); the database counts. */
  @Column({ type: 'int', insert: false, update: false })
  version!: number;

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  @Column({ type: 'text' })
  currency!: string;

  /** The partner's own id, unique per table, partner and mode for ever. */
  @Column({ type: 'text', nullable: true })
  reference!: string | null;

  @Column({ type: 'jsonb' })
  metadata!: Record<string, string>;

  @Column({ type: 'text' })
  provider!: string;

  /** D19: fixed before the first provider call and used by every one. */
  @Column({ name: 'provider_reference', type: 'text' })
  providerReference!: string;

  /** The provider's name of the package, as it was at acceptance. */
  @Column({ name: 'upstream_package_id', type: 'text' })
  upstreamPackageId!: string;

  /** What one cost at the provider at acceptance, in millionths of the currency's unit; null when nobody charges for it. */
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

  /** Times that a worker took it up. */
  abstract attempts: number;

  /** The class of the last attempt's error, for support; null when the provider answered. */
  @Column({ name: 'last_error', type: 'text', nullable: true })
  lastError!: string | null;

  /** The time of the next attempt; null when nothing is owed. */
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

  @Column({ name: 'failed_at', type: 'timestamptz', nullable: true })
  failedAt!: Date | null;
}

/** How the code and its messages name one of the two kinds. */
export interface PurchaseKind<P extends Purchase = Purchase> {
  /** Prefix of log events and ids, e.g. `order.attempt_failed` and `orderId`. */
  readonly name: PlacementKind;
  readonly noun: 'order' | 'top-up';
  readonly table: 'orders' | 'topups';
  readonly entity: new () => P;
}

export interface PurchaseFilters {
  readonly status?: string | undefined;
  readonly reference?: string | undefined;
}

/** How every provider call about a purchase names it: fixed at acceptance (D19). */
export function toProviderRequest(purchase: Purchase) {
  return {
    reference: purchase.providerReference,
    packageId: purchase.packageId,
    upstreamPackageId: purchase.upstreamPackageId,
    unitCost: unitCostOf(purchase),
    // What is claimed after a restore was bought before it was accepted again (D54).
    acceptedAt: earliestOf(purchase.createdAt, purchase.upstreamPlacedAt),
  };
}
