import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, Matches } from 'class-validator';
import { ListQueryDto, Optional, Rfc3339 } from '../../infra/http/index.js';
import {
  DELIVERY_EVENT_TYPES,
  DELIVERY_STATUSES,
  type DeliveryEventType,
  type DeliveryStatus,
} from '../delivery.js';
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
    createdAfter: query.created_after,
    createdBefore: query.created_before,
  };
}
