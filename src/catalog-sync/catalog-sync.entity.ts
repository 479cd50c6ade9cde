import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

export const SYNC_STATUSES = ['requested', 'running', 'completed', 'failed'] as const;
export type SyncStatus = (typeof SYNC_STATUSES)[number];

/** Number of packages in the list, new or changed, and no longer sold. */
export interface WrittenOutcome {
  readonly listed: number;
  readonly changed: number;
  readonly withdrawn: number;
}

/**
 * Why a provider's packages are not all up to date: its list, or the storable part of it, is implausibly short; no page
 * arrived; only some pages arrived and were stored; or only the prices of its top-ups are missing.
 */
export const SYNC_ERRORS = [
  'catalog_shrank',
  'provider_unavailable',
  'catalog_incomplete',
  'topup_prices_unavailable',
] as const;
export type SyncError = (typeof SYNC_ERRORS)[number];

/**
 * Result of a synchronization for one provider. Only an `error` makes the synchronization repeat before the next one is
 * due.
 */
export type SyncOutcome =
  | WrittenOutcome
  | (WrittenOutcome & { readonly warning: SyncError })
  | (Partial<WrittenOutcome> & { readonly error: SyncError });

/** One run of the job that copies the providers' packages into the live catalog. */
@Entity({ name: 'catalog_syncs' })
export class CatalogSyncEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  status!: SyncStatus;

  @CreateDateColumn({ name: 'requested_at', type: 'timestamptz' })
  requestedAt!: Date;

  @Column({ name: 'started_at', type: 'timestamptz', nullable: true })
  startedAt!: Date | null;

  @Column({ name: 'ended_at', type: 'timestamptz', nullable: true })
  endedAt!: Date | null;

  /** By provider name. */
  @Column({ type: 'jsonb' })
  result!: Record<string, SyncOutcome>;
}
