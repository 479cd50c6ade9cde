import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ListQueryDto, Optional, Rfc3339, ShortText } from '../../infra/http/index.js';
import { ALERT_TYPES, type AlertType } from '../alert.entity.js';
import type { AlertFilters } from '../alerts.repository.js';

export class AlertsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: ALERT_TYPES })
  @Optional()
  @IsIn(ALERT_TYPES, { message: `must be one of ${ALERT_TYPES.join(', ')}` })
  type?: AlertType;

  @ApiPropertyOptional({ type: String, maxLength: 128 })
  @Optional()
  @ShortText(128)
  partner_id?: string;

  @ApiPropertyOptional({ type: String, maxLength: 128, description: 'The id of what the alert is about.' })
  @Optional()
  @ShortText(128)
  subject_id?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Inclusive.' })
  @Optional()
  @Rfc3339()
  created_after?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Exclusive.' })
  @Optional()
  @Rfc3339()
  created_before?: string;
}

export function toAlertFilters(query: AlertsQueryDto): AlertFilters {
  return {
    type: query.type,
    partnerId: query.partner_id,
    subjectId: query.subject_id,
    createdAfter: query.created_after === undefined ? undefined : new Date(query.created_after),
    createdBefore: query.created_before === undefined ? undefined : new Date(query.created_before),
  };
}
