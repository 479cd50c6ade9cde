import { ApiProperty } from '@nestjs/swagger';
import { ALERT_TYPES, type AlertEntity, type AlertType } from '../alert.entity.js';

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
    description: 'The id of what the alert is about.',
  })
  subject_id!: string;

  @ApiProperty({ type: Object, description: 'Never a key or a secret.' })
  details!: Readonly<Record<string, unknown>>;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export function toAlertResponse(alert: AlertEntity): AlertResponse {
  return {
    id: alert.id,
    type: alert.type,
    partner_id: alert.partnerId,
    subject_id: alert.subjectId,
    details: alert.details,
    created_at: alert.createdAt.toISOString(),
  };
}
