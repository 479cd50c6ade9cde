import { Column, CreateDateColumn, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { earliestOf } from '../common/clock.js';
import type { ReturnedSpending } from '../auth/index.js';
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

  /** Increases by one with each change visible to partners (D48); the database counts. */
  @Column({ type: 'int', insert: false, update: false })
  version!: number;

  @Column({ name: 'package_id', type: 'text' })
  packageId!: string;

  /** Number of days bought of a package sold by the day (D60); null for a package of fixed days. */
  @Column({ type: 'int', nullable: true })
  days!: number | null;

  @Column({ type: 'text' })
  currency!: string;

  /** The partner's own id, unique per table, partner and mode forever. */
  @Column({ type: 'text', nullable: true })
  reference!: string | null;

  @Column({ type: 'jsonb' })
  metadata!: Record<string, string>;

  @Column({ type: 'text' })
  provider!: string;

  /** Fixed before the first provider call and used by every one (D19). */
  @Column({ name: 'provider_reference', type: 'text' })
  providerReference!: string;

  /** The provider's package id at acceptance. */
  @Column({ name: 'upstream_package_id', type: 'text' })
  upstreamPackageId!: string;

  /** Unit cost at the provider at acceptance, in micros; null when it costs us nothing. */
  @Column({ name: 'unit_cost_micros', type: 'bigint', nullable: true, transformer: bigintColumn })
  unitCostMicros!: number | null;

  @Column({ name: 'unit_cost_currency', type: 'text', nullable: true })
  unitCostCurrency!: string | null;

  /** Time of the last placement that may have taken effect at the provider; null when none was ever sent. */
  @Column({ name: 'upstream_placed_at', type: 'timestamptz', nullable: true })
  upstreamPlacedAt!: Date | null;

  @Column({ name: 'failure_code', type: 'text', nullable: true })
  failureCode!: FailureCode | null;

  @Column({ name: 'failure_reason', type: 'text', nullable: true })
  failureReason!: string | null;

  /** Number of times that a worker claimed it. */
  abstract attempts: number;

  /** Error class of the last attempt, for support; null when the provider responded. */
  @Column({ name: 'last_error', type: 'text', nullable: true })
  lastError!: string | null;

  /** Time of the next attempt; null when none is due. */
  @Column({ name: 'next_attempt_at', type: 'timestamptz', nullable: true })
  nextAttemptAt!: Date | null;

  @Column({ name: 'lease_until', type: 'timestamptz', nullable: true })
  leaseUntil!: Date | null;

  @Column({ type: 'bigint', transformer: bigintColumn })
  fence!: number;

  @Column({ name: 'accepted_request_id', type: 'text' })
  acceptedRequestId!: string;

  /** The key that bought it, if it had a spend limit (D62). */
  @Column({ name: 'limited_key_id', type: 'text', nullable: true })
  limitedKeyId!: string | null;

  /** Trace of the call that accepted it (D53); null when that was untraced. */
  @Column({ type: 'text', nullable: true })
  traceparent!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;

  @Column({ name: 'failed_at', type: 'timestamptz', nullable: true })
  failedAt!: Date | null;
}

/** Names of a kind of purchase in code and messages. */
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

/** The part of the purchase's price that no longer counts toward its key's spend limit. */
export function returnedSpending(
  { limitedKeyId: keyId, createdAt: boughtAt }: Purchase,
  amount: number,
): ReturnedSpending | null {
  return keyId === null || amount === 0 ? null : { keyId, boughtAt, amount };
}

/** The common part of every provider call about a purchase, fixed at acceptance. */
export function toProviderRequest(purchase: Purchase) {
  return {
    reference: purchase.providerReference,
    packageId: purchase.packageId,
    upstreamPackageId: purchase.upstreamPackageId,
    days: purchase.days,
    unitCost: unitCostOf(purchase),
    // A purchase claimed after a restore was bought before it was accepted again (D54).
    acceptedAt: earliestOf(purchase.createdAt, purchase.upstreamPlacedAt),
  };
}
