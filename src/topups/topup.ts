import { Column, Entity } from 'typeorm';
import { type EsimEntity, toProviderEsim } from '../esims/index.js';
import { bigintColumn } from '../infra/database/index.js';
import type { EsimPurchasesRepository, ProviderTopupRequest } from '../providers/index.js';
import { Purchase, type PurchaseFilters, type PurchaseKind, toProviderRequest } from '../purchases/index.js';

/** Same as for orders (D22): without a provider's result it stays `processing`; the last two are final. */
export const TOPUP_STATUSES = ['pending', 'processing', 'completed', 'failed'] as const;
export type TopupStatus = (typeof TOPUP_STATUSES)[number];

@Entity({ name: 'topups' })
export class TopupEntity extends Purchase {
  @Column({ name: 'esim_id', type: 'text' })
  esimId!: string;

  @Column({ type: 'text' })
  iccid!: string;

  @Column({ type: 'text' })
  status!: TopupStatus;

  @Column({ name: 'price_amount', type: 'bigint', transformer: bigintColumn })
  priceAmount!: number;

  /** Data of the package at the time of sale; null for one that adds days only. */
  @Column({ name: 'data_added_bytes', type: 'bigint', nullable: true, transformer: bigintColumn })
  dataAddedBytes!: number | null;

  @Column({ name: 'validity_added_days', type: 'int' })
  validityAddedDays!: number;

  /** The rule that placed it automatically (D67); null if the partner did. */
  @Column({ name: 'auto_topup_id', type: 'text', nullable: true })
  autoTopupId!: string | null;

  @Column({ type: 'int' })
  attempts!: number;

  @Column({ name: 'completed_at', type: 'timestamptz', nullable: true })
  completedAt!: Date | null;
}

export const TOPUPS: PurchaseKind<TopupEntity> = {
  name: 'topup',
  noun: 'top-up',
  table: 'topups',
  entity: TopupEntity,
};

export interface TopupFilters extends PurchaseFilters {
  readonly esimId?: string | undefined;
  readonly status?: TopupStatus | undefined;
}

/** The request of every provider call about the top-up: fixed at acceptance (D19). */
export function toProviderTopupRequest(
  topup: TopupEntity,
  esim: EsimEntity,
  purchases: EsimPurchasesRepository,
): ProviderTopupRequest {
  return {
    ...toProviderRequest(topup),
    esim: toProviderEsim(esim),
    otherPurchases: () => purchases.getBesides(topup.providerReference),
  };
}
