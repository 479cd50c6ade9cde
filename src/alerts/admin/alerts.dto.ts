import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ListQueryDto, Optional, Rfc3339, ShortText } from '../../infra/http/index.js';
import {
  ALERT_STATES,
  ALERT_TYPES,
  type AlertEntity,
  type AlertFilters,
  type AlertState,
  type AlertType,
} from '../alerts.repository.js';

export class AlertsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: ALERT_TYPES })
  @Optional()
  @IsIn(ALERT_TYPES, { message: `must be one of ${ALERT_TYPES.join(', ')}` })
  type?: AlertType;

  @ApiPropertyOptional({
    enum: ALERT_STATES,
    description: '`resolved`: the cause has ended. Alerts that report a loss stay open.',
  })
  @Optional()
  @IsIn(ALERT_STATES, { message: `must be one of ${ALERT_STATES.join(', ')}` })
  state?: AlertState;

  @ApiPropertyOptional({ type: String, maxLength: 128 })
  @Optional()
  @ShortText(128)
  partner_id?: string;

  @ApiPropertyOptional({
    type: String,
    maxLength: 128,
    description: 'The id of the object that the alert is about.',
  })
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
    state: query.state,
    partnerId: query.partner_id,
    subjectId: query.subject_id,
    createdAfter: query.created_after === undefined ? undefined : new Date(query.created_after),
    createdBefore: query.created_before === undefined ? undefined : new Date(query.created_before),
  };
}

export class AlertResponse {
  @ApiProperty({ type: String, example: 'alr_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ enum: ALERT_TYPES })
  type!: AlertType;

  @ApiProperty({ type: String, nullable: true })
  partner_id!: string | null;

  @ApiProperty({
    type: String,
    example: 'whe_01KAEXAMPLE000000000000000',
    description: 'The id of the object that the alert is about.',
  })
  subject_id!: string;

  @ApiProperty({ type: Object, description: 'Details of the alert. Never contains a key or a secret.' })
  details!: Readonly<Record<string, unknown>>;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    example: null,
    description: 'When the cause ended, give or take a minute; null while the alert is open.',
  })
  resolved_at!: string | null;
}

export function toAlertResponse(alert: AlertEntity): AlertResponse {
  return {
    id: alert.id,
    type: alert.type,
    partner_id: alert.partnerId,
    subject_id: alert.subjectId,
    details: alert.details,
    created_at: alert.createdAt.toISOString(),
    resolved_at: alert.resolvedAt?.toISOString() ?? null,
  };
}
