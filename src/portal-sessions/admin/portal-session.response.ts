import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { PORTAL_SCOPES, type PortalScope } from '../../common/scopes.js';
import {
  PORTAL_SESSION_STATUSES,
  type PortalSessionEntity,
  type PortalSessionStatus,
} from '../portal-session.entity.js';
import type { MintedSession } from '../portal-sessions.service.js';

export class PortalActorResponse {
  @ApiProperty({ type: String, example: 'user-17' })
  id!: string;

  @ApiProperty({ type: String, nullable: true, example: 'Ada' })
  name!: string | null;
}

export class MintedPortalSessionResponse {
  @ApiProperty({ type: String, example: 'ps_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'https://portal.example/#code=pst_...',
    description: 'Shown only in this response; null when the response is replayed. The code works once.',
  })
  url!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  code_expires_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  expires_at!: string;
}

export class PortalSessionResponse {
  @ApiProperty({ type: String, example: 'ps_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({
    type: String,
    example: 'portal',
    description: 'The name of the admin token that created the session.',
  })
  minted_by!: string;

  @ApiProperty({ type: PortalActorResponse })
  actor!: PortalActorResponse;

  @ApiProperty({ enum: PORTAL_SCOPES, isArray: true })
  scopes!: readonly PortalScope[];

  @ApiProperty({ enum: MODES, isArray: true })
  modes!: readonly Mode[];

  @ApiProperty({
    enum: PORTAL_SESSION_STATUSES,
    description: '`pending`: the code has not been used; `active`: a browser uses the session.',
  })
  status!: PortalSessionStatus;

  @ApiProperty({ type: String, nullable: true })
  return_url!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  exchanged_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  revoked_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  expires_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export class RevokedPortalSessionsResponse {
  @ApiProperty({ type: 'integer', description: 'The number of sessions that were ended.' })
  revoked!: number;
}

export function toMintedResponse({ session, url }: MintedSession): MintedPortalSessionResponse {
  return {
    id: session.id,
    url,
    code_expires_at: session.codeExpiresAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
  };
}

export function toPortalSessionResponse(session: PortalSessionEntity): PortalSessionResponse {
  return {
    id: session.id,
    partner_id: session.partnerId,
    minted_by: session.mintedBy,
    actor: { id: session.actorId, name: session.actorName },
    scopes: session.scopes,
    modes: session.modes,
    status: session.status,
    return_url: session.returnUrl,
    exchanged_at: session.exchangedAt?.toISOString() ?? null,
    revoked_at: session.revokedAt?.toISOString() ?? null,
    expires_at: session.expiresAt.toISOString(),
    created_at: session.createdAt.toISOString(),
  };
}
