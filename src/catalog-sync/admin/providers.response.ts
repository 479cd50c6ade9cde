import { ApiProperty } from '@nestjs/swagger';
import type { ProviderHealth } from '../../providers/index.js';
import {
  type CatalogSyncEntity,
  SYNC_ERRORS,
  SYNC_STATUSES,
  type SyncError,
  type SyncStatus,
} from '../catalog-sync.entity.js';

export const PROVIDER_STATES = ['ok', 'failing', 'unknown'] as const;

/** A provider's amounts are finer than ours: micros, millionths of the currency's unit. */
export class UpstreamBalanceResponse {
  @ApiProperty({ type: 'integer', example: 125_500_000, description: 'Millionths of the currency unit.' })
  amount_micros!: number;

  @ApiProperty({ type: String, example: 'USD' })
  currency!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  as_of!: string | null;
}

export class ProviderResponse {
  @ApiProperty({ type: String, example: 'esim_access' })
  name!: string;

  @ApiProperty({ enum: PROVIDER_STATES, description: 'The outcome of the last call.' })
  state!: ProviderHealth['state'];

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  last_ok_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  last_error_at!: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'timeout' })
  last_error_code!: string | null;

  @ApiProperty({ type: () => UpstreamBalanceResponse, nullable: true })
  balance!: UpstreamBalanceResponse | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The last synchronization of the catalog.',
  })
  last_sync_at!: string | null;

  @ApiProperty({
    enum: SYNC_ERRORS,
    nullable: true,
    description:
      'Why the newest synchronization of this wholesaler is incomplete: no usable list arrived, ' +
      '`catalog_incomplete` (the packages received are stored and none was withdrawn), or ' +
      '`topup_prices_unavailable` (all packages are current, but the prices of top-ups are older).',
  })
  last_sync_error!: SyncError | null;
}

export class CatalogSyncResponse {
  @ApiProperty({ type: String, example: 'syn_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ enum: SYNC_STATUSES })
  status!: SyncStatus;

  @ApiProperty({ type: String, format: 'date-time' })
  requested_at!: string;
}

export function toProviderResponse(
  name: string,
  health: ProviderHealth | undefined,
  lastSyncError: SyncError | null,
): ProviderResponse {
  return {
    name,
    state: health?.state ?? 'unknown',
    last_ok_at: health?.lastOkAt?.toISOString() ?? null,
    last_error_at: health?.lastErrorAt?.toISOString() ?? null,
    last_error_code: health?.lastErrorCode ?? null,
    balance: health?.balance
      ? {
          amount_micros: health.balance.micros,
          currency: health.balance.currency,
          as_of: health.balanceAt?.toISOString() ?? null,
        }
      : null,
    last_sync_at: health?.lastSyncAt?.toISOString() ?? null,
    last_sync_error: lastSyncError,
  };
}

export function toCatalogSyncResponse(sync: CatalogSyncEntity): CatalogSyncResponse {
  return { id: sync.id, status: sync.status, requested_at: sync.requestedAt.toISOString() };
}
