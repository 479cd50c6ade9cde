import { ApiPropertyOptional } from '@nestjs/swagger';
import { ListQueryDto, Optional, Rfc3339, ShortText } from '../../infra/http/index.js';
import type { AuditFilters } from '../audit.repository.js';

export class AuditLogQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ type: String, maxLength: 128 })
  @Optional()
  @ShortText(128)
  partner_id?: string;

  @ApiPropertyOptional({ type: String, maxLength: 128, description: 'The id of what was changed.' })
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
