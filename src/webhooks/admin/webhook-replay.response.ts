import { ApiProperty } from '@nestjs/swagger';
import { EVENT_TYPES, type EventType } from '../../events/index.js';
import {
  BACKLOG_JOB_STATUSES,
  type BacklogJobStatus,
  REPLAYABLE_STATUSES,
  type ReplayableStatus,
} from '../backlog-job.entity.js';
import type { ReplaySelection } from '../backlog-steps.repository.js';
import type { ReplayPreview, TrackedReplay } from '../replay-events.js';

export class WebhookReplayResponse {
  @ApiProperty({
    type: String,
    nullable: true,
    example: 'rpl_01KAEXAMPLE000000000000000',
    description: 'Null for a dry run.',
  })
  id!: string | null;

  @ApiProperty({ type: String, example: 'whe_01KAEXAMPLE000000000000000' })
  endpoint_id!: string;

  @ApiProperty({ type: Boolean })
  dry_run!: boolean;

  @ApiProperty({ enum: BACKLOG_JOB_STATUSES, nullable: true, description: 'Null for a dry run.' })
  status!: BacklogJobStatus | null;

  @ApiProperty({ type: String, format: 'date-time' })
  since!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  until!: string;

  @ApiProperty({ enum: EVENT_TYPES, isArray: true, nullable: true })
  event_types!: readonly EventType[] | null;

  @ApiProperty({ enum: REPLAYABLE_STATUSES, isArray: true })
  statuses!: readonly ReplayableStatus[];

  @ApiProperty({
    type: 'integer',
    description:
      'The number of matching deliveries. It grows while the worker is still selecting. A dry run stops counting at 10,000, which means "at least".',
  })
  total!: number;

  @ApiProperty({
    type: 'integer',
    description:
      'New deliveries created so far. If a completed replay has fewer than `total`, the other events were past their retention period.',
  })
  created!: number;

  @ApiProperty({ type: 'integer' })
  delivered!: number;

  @ApiProperty({ type: 'integer' })
  failed!: number;

  @ApiProperty({ type: 'integer', description: 'Created but not yet sent, including held deliveries.' })
  pending!: number;

  @ApiProperty({ type: 'integer' })
  discarded!: number;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  created_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  ended_at!: string | null;
}

export function toReplayResponse({ replay, progress }: TrackedReplay): WebhookReplayResponse {
  return {
    id: replay.id,
    ...toSelection(replay),
    dry_run: false,
    status: replay.status,
    total: replay.total,
    created: replay.created,
    ...progress,
    created_at: replay.createdAt.toISOString(),
    ended_at: replay.endedAt?.toISOString() ?? null,
  };
}

export function toPreviewResponse(preview: ReplayPreview): WebhookReplayResponse {
  return {
    id: null,
    ...toSelection(preview),
    dry_run: true,
    status: null,
    total: preview.total,
    created: 0,
    delivered: 0,
    failed: 0,
    pending: 0,
    discarded: 0,
    created_at: null,
    ended_at: null,
  };
}

function toSelection(
  selection: ReplaySelection,
): Pick<WebhookReplayResponse, 'endpoint_id' | 'since' | 'until' | 'event_types' | 'statuses'> {
  return {
    endpoint_id: selection.endpointId,
    since: selection.since.toISOString(),
    until: selection.until.toISOString(),
    event_types: selection.eventTypes,
    statuses: selection.statuses,
  };
}
