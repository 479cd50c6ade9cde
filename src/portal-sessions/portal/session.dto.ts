import { ApiProperty } from '@nestjs/swagger';
import type { PortalSession } from '../../auth/index.js';
import { MODES, type Mode } from '../../common/mode.js';
import { PORTAL_SCOPES, type PortalScope } from '../../common/scopes.js';
import type { PortalConfig } from '../../config/index.js';
import { BrandResponse, ShortText } from '../../infra/http/index.js';
import { PortalActorResponse } from '../admin/portal-session.response.js';

const MAX_CODE = 128;

export class ExchangeCodeDto {
  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_CODE,
    description: 'The code from the fragment of the link. It works once.',
  })
  @ShortText(MAX_CODE)
  code!: string;
}

export class SessionPartnerResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'Demo Travel' })
  name!: string;

  @ApiProperty({ type: String, enum: ['active', 'suspended'] })
  status!: string;

  @ApiProperty({ type: BrandResponse, description: 'The brand on the pages that the travelers see.' })
  brand!: BrandResponse;
}

/** The operator's brand in the portal. */
export class PortalBrandingResponse {
  @ApiProperty({ type: String })
  name!: string;

  @ApiProperty({ type: String, nullable: true })
  logo_url!: string | null;

  @ApiProperty({ type: String, nullable: true, example: '#0a66c2' })
  accent!: string | null;
}

export class SessionResponse {
  @ApiProperty({ type: String, example: 'ps_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: SessionPartnerResponse })
  partner!: SessionPartnerResponse;

  @ApiProperty({ type: PortalActorResponse })
  actor!: PortalActorResponse;

  @ApiProperty({ enum: MODES, isArray: true })
  modes!: readonly Mode[];

  @ApiProperty({ enum: PORTAL_SCOPES, isArray: true })
  scopes!: readonly PortalScope[];

  @ApiProperty({ type: String, format: 'date-time' })
  expires_at!: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    description:
      'Until this time the session can do actions that otherwise get 403 `step_up_required`, such as creating and revoking live keys.',
  })
  step_up_until!: string;

  @ApiProperty({ type: String, nullable: true })
  return_url!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'https://api.example',
    description: "The address of the API for the partner's programs; null if not configured.",
  })
  api_url!: string | null;

  @ApiProperty({ type: PortalBrandingResponse })
  branding!: PortalBrandingResponse;
}

export class EndedSessionResponse {
  @ApiProperty({ type: Boolean, example: true })
  ended!: true;
}

export function toSessionResponse(
  session: PortalSession,
  { brand, apiUrl }: Pick<PortalConfig, 'brand' | 'apiUrl'>,
): SessionResponse {
  return {
    id: session.id,
    partner: {
      id: session.partnerId,
      name: session.partnerName,
      status: session.partnerStatus,
      brand: session.partnerBrand,
    },
    actor: { id: session.actorId, name: session.actorName },
    modes: session.modes,
    scopes: session.scopes,
    expires_at: session.expiresAt.toISOString(),
    step_up_until: session.stepUpUntil.toISOString(),
    return_url: session.returnUrl,
    api_url: apiUrl,
    branding: { name: brand.name, logo_url: brand.logoUrl, accent: brand.accent },
  };
}
