import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { ListQueryDto, Optional, Rfc3339, ShortText } from '../../infra/http/index.js';
import type { AuditEntryEntity, AuditFilters } from '../audit.repository.js';

export class AuditLogQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ type: String, maxLength: 128 })
  @Optional()
  @ShortText(128)
  partner_id?: string;

  @ApiPropertyOptional({ type: String, maxLength: 128, description: 'The id of the changed object.' })
  @Optional()
  @ShortText(128)
  subject_id?: string;

  @ApiPropertyOptional({
    type: String,
    maxLength: 128,
    description: 'A token name of ADMIN_TOKENS, or `system`.',
  })
  @Optional()
  @ShortText(128)
  actor?: string;

  @ApiPropertyOptional({ type: String, maxLength: 128, example: 'api_key.revoked' })
  @Optional()
  @ShortText(128)
  action?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Inclusive.' })
  @Optional()
  @Rfc3339()
  created_after?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Exclusive.' })
  @Optional()
  @Rfc3339()
  created_before?: string;
}

export function toAuditFilters(query: AuditLogQueryDto): AuditFilters {
  return {
    partnerId: query.partner_id,
    subjectId: query.subject_id,
    actor: query.actor,
    action: query.action,
    createdAfter: query.created_after === undefined ? undefined : new Date(query.created_after),
    createdBefore: query.created_before === undefined ? undefined : new Date(query.created_before),
  };
}

export class AuditEntryResponse {
  @ApiProperty({ type: String, example: 'aud_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'portal', description: 'A token name of ADMIN_TOKENS, or `system`.' })
  actor!: string;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The `X-Actor` of the call, or the user of the portal session.',
  })
  portal_user!: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'The portal session that made the change.' })
  session_id!: string | null;

  @ApiProperty({ type: String, example: 'api_key.revoked' })
  action!: string;

  @ApiProperty({ type: String, nullable: true })
  partner_id!: string | null;

  @ApiProperty({
    type: String,
    example: 'key_01KAEXAMPLE000000000000000',
    description: 'The id of the changed object.',
  })
  subject_id!: string;

  @ApiProperty({ type: Object, description: 'The changed values. Never contains a key or a secret.' })
  details!: Readonly<Record<string, unknown>>;

  @ApiProperty({ type: String, nullable: true })
  request_id!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export function toAuditEntryResponse(entry: AuditEntryEntity): AuditEntryResponse {
  return {
    id: entry.id,
    actor: entry.actor,
    portal_user: entry.portalUser,
    session_id: entry.sessionId,
    action: entry.action,
    partner_id: entry.partnerId,
    subject_id: entry.subjectId,
    details: entry.details,
    request_id: entry.requestId,
    created_at: entry.createdAt.toISOString(),
  };
}
