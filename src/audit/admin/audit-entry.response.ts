import { ApiProperty } from '@nestjs/swagger';
import type { AuditEntryEntity } from '../audit-entry.entity.js';

export class AuditEntryResponse {
  @ApiProperty({ type: String, example: 'aud_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'portal', description: 'A token name of ADMIN_TOKENS, or `system`.' })
  actor!: string;

  @ApiProperty({ type: String, nullable: true, description: 'The `X-Actor` of the call.' })
  portal_user!: string | null;

  @ApiProperty({ type: String, example: 'api_key.revoked' })
  action!: string;

  @ApiProperty({ type: String, nullable: true })
  partner_id!: string | null;

  @ApiProperty({
    type: String,
    example: 'key_01KAEXAMPLE000000000000000',
    description: 'The id of what was changed.',
  })
  subject_id!: string;

  @ApiProperty({ type: Object, description: 'What changed; never a key or a secret.' })
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
    action: entry.action,
    partner_id: entry.partnerId,
    subject_id: entry.subjectId,
    details: entry.details,
    request_id: entry.requestId,
    created_at: entry.createdAt.toISOString(),
  };
}
