import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

export const SYNC_STATUSES = ['requested', 'running', 'completed', 'failed'] as const;
export type SyncStatus = (typeof SYNC_STATUSES)[number];

/** Packages in the list, new or changed, and no longer sold. */
export interface WrittenOutcome {
  readonly listed: number;
  readonly changed: number;
  readonly withdrawn: number;
}

export const SYNC_ERRORS = ['catalog_shrank', 'provider_unavailable'] as const;
export type SyncError = (typeof SYNC_ERRORS)[number];

/** What a synchronisation did with one wholesaler's packages. */
export type SyncOutcome = WrittenOutcome | { readonly error: SyncError };

/** One run of the job that brings the wholesalers' packages into the live catalogue. */
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
