import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { ArrayNotEmpty, ArrayUnique, IsArray, IsBoolean, IsIn, Matches } from 'class-validator';
import { ValidationFailed } from '../../common/errors/index.js';
import { EVENT_TYPES, type EventType } from '../../events/index.js';
import { ListQueryDto, Optional, QueryInteger, Rfc3339 } from '../../infra/http/index.js';
import { REPLAYABLE_STATUSES, type ReplayableStatus } from '../backlog-job.entity.js';
import {
  ATTEMPT_OUTCOMES,
  type AttemptOutcome,
  DELIVERY_EVENT_TYPES,
  DELIVERY_STATUSES,
  type DeliveryEventType,
  type DeliveryStatus,
} from '../delivery.js';
import type { ReplayCommand } from '../replay-events.js';
import type { DeliveryFilters } from '../webhook-deliveries.repository.js';

export class DeliveriesQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: DELIVERY_STATUSES })
  @Optional()
  @IsIn(DELIVERY_STATUSES, { message: `must be one of ${DELIVERY_STATUSES.join(', ')}` })
  status?: DeliveryStatus;

  @ApiPropertyOptional({ enum: DELIVERY_EVENT_TYPES })
  @Optional()
  @IsIn(DELIVERY_EVENT_TYPES, { message: 'must be a known event type' })
  event_type?: DeliveryEventType;

  @ApiPropertyOptional({
    type: String,
    pattern: '^evt_[0-9A-Z]{1,60}$',
    example: 'evt_01KAEXAMPLE000000000000000',
  })
  @Optional()
  @Matches(/^evt_[0-9A-Z]{1,60}$/, { message: 'must be the id of an event' })
  event_id?: string;

  @ApiPropertyOptional({
    type: 'integer',
    minimum: 100,
    maximum: 599,
    description: 'Matches the last attempt.',
  })
  @Optional()
  @QueryInteger({ min: 100, max: 599 })
  status_code?: number;

  @ApiPropertyOptional({ enum: ATTEMPT_OUTCOMES, description: 'Matches the last attempt.' })
  @Optional()
  @IsIn(ATTEMPT_OUTCOMES, { message: `must be one of ${ATTEMPT_OUTCOMES.join(', ')}` })
  outcome?: AttemptOutcome;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Inclusive.' })
  @Optional()
  @Rfc3339()
  created_after?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Exclusive.' })
  @Optional()
  @Rfc3339()
  created_before?: string;
}

export function toDeliveryFilters(query: DeliveriesQueryDto): DeliveryFilters {
  return {
    status: query.status,
    eventType: query.event_type,
    eventId: query.event_id,
    statusCode: query.status_code,
    outcome: query.outcome,
    createdAfter: query.created_after === undefined ? undefined : new Date(query.created_after),
    createdBefore: query.created_before === undefined ? undefined : new Date(query.created_before),
  };
}

export class ReplayEventsDto {
  @ApiProperty({ type: String, format: 'date-time', description: 'Inclusive.' })
  @Rfc3339()
  since!: string;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Exclusive; now if absent.',
  })
  @Optional()
  @Rfc3339()
  until?: string | null;

  @ApiPropertyOptional({ enum: EVENT_TYPES, isArray: true, nullable: true, minItems: 1, uniqueItems: true })
  @Optional()
  @IsArray({ message: 'must be a list of event types' })
  @ArrayNotEmpty({ message: 'must not be empty; omit it for every type' })
  @ArrayUnique({ message: 'must not repeat a type' })
  @IsIn(EVENT_TYPES, { each: true, message: 'must hold known event types' })
  event_types?: EventType[] | null;

  @ApiPropertyOptional({
    enum: REPLAYABLE_STATUSES,
    isArray: true,
    nullable: true,
    minItems: 1,
    uniqueItems: true,
    description:
      'Statuses of the original deliveries. Absent: all of these. Pending and held deliveries are sent anyway.',
  })
  @Optional()
  @IsArray({ message: 'must be a list of statuses' })
  @ArrayNotEmpty({ message: 'must not be empty; omit it for every status' })
  @ArrayUnique({ message: 'must not repeat a status' })
  @IsIn(REPLAYABLE_STATUSES, { each: true, message: `must hold only ${REPLAYABLE_STATUSES.join(', ')}` })
  statuses?: ReplayableStatus[] | null;

  @ApiPropertyOptional({
    type: Boolean,
    nullable: true,
    default: false,
    description: 'Counts the deliveries without creating them.',
  })
  @Optional()
  @IsBoolean({ message: 'must be true or false' })
  dry_run?: boolean | null;
}

/** @throws ValidationFailed when `until` is not later than `since` */
export function toReplayCommand(body: ReplayEventsDto): ReplayCommand {
  const since = new Date(body.since);
  const until = body.until == null ? null : new Date(body.until);
  if (until !== null && until <= since) {
    throw new ValidationFailed([
      { pointer: '/until', code: 'out_of_range', message: 'must be later than since' },
    ]);
  }
  return {
    since,
    until,
    eventTypes: body.event_types ?? null,
    statuses: body.statuses ?? [...REPLAYABLE_STATUSES],
  };
}
