import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { Optional } from '../../infra/http/index.js';
import type { StatsBucket } from '../endpoint-stats.repository.js';
import { percentileOf } from '../latency-classes.js';
import { STATS_WINDOWS, type StatsWindow } from '../show-endpoints.js';

const WINDOWS = Object.keys(STATS_WINDOWS) as StatsWindow[];
export const DEFAULT_STATS_WINDOW: StatsWindow = '24h';

export class EndpointStatsQueryDto {
  @ApiPropertyOptional({ enum: WINDOWS, default: DEFAULT_STATS_WINDOW })
  @Optional()
  @IsIn(WINDOWS, { message: `must be one of ${WINDOWS.join(', ')}` })
  window?: StatsWindow;
}

export class StatsBucketResponse {
  @ApiProperty({ type: String, format: 'date-time', description: 'The start of the bucket.' })
  at!: string;

  @ApiProperty({ type: 'integer', description: 'Attempts that got a 2xx. Tests do not count.' })
  delivered!: number;

  @ApiProperty({ type: 'integer', description: 'Attempts that failed.' })
  failed!: number;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Milliseconds, interpolated; null if there were no attempts.',
  })
  p50_ms!: number | null;

  @ApiProperty({ type: 'integer', nullable: true })
  p95_ms!: number | null;
}

export class EndpointStatsResponse {
  @ApiProperty({ enum: WINDOWS })
  window!: StatsWindow;

  @ApiProperty({ type: 'integer', example: 900 })
  bucket_seconds!: number;

  @ApiProperty({
    type: () => [StatsBucketResponse],
    description: 'Oldest first, including buckets without attempts.',
  })
  buckets!: readonly StatsBucketResponse[];
}

export function toEndpointStatsResponse(
  window: StatsWindow,
  buckets: readonly StatsBucket[],
): EndpointStatsResponse {
  return {
    window,
    bucket_seconds: STATS_WINDOWS[window].stepSeconds,
    buckets: buckets.map(({ at, delivered, failed, latencies }) => ({
      at: at.toISOString(),
      delivered,
      failed,
      p50_ms: percentileOf(latencies, 0.5),
      p95_ms: percentileOf(latencies, 0.95),
    })),
  };
}
