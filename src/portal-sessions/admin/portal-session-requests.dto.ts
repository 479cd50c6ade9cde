import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayNotEmpty,
  ArrayUnique,
  IsArray,
  IsDefined,
  IsIn,
  IsInt,
  IsObject,
  Max,
  Min,
  ValidateBy,
  ValidateNested,
} from 'class-validator';
import { MODES, type Mode } from '../../common/mode.js';
import { LINE_PATTERN } from '../../common/plain-text.js';
import { PORTAL_SCOPES, type PortalScope } from '../../common/scopes.js';
import { Optional, SingleLineText } from '../../infra/http/index.js';
import type { PortalSessionTerms } from '../portal-sessions.service.js';

const MAX_ACTOR = 128;
const MAX_URL = 2_048;
const TTL_SECONDS = { min: 300, max: 86_400, usual: 28_800 } as const;

export class PortalActorDto {
  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_ACTOR,
    pattern: LINE_PATTERN,
    example: 'user-17',
    description: 'For the audit log.',
  })
  @SingleLineText(MAX_ACTOR)
  id!: string;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_ACTOR,
    pattern: LINE_PATTERN,
    example: 'Ada',
  })
  @Optional()
  @SingleLineText(MAX_ACTOR)
  name?: string | null;
}

export class CreatePortalSessionDto {
  @ApiProperty({ type: PortalActorDto })
  @IsDefined({ message: 'is required' })
  @IsObject({ message: 'must be an object' })
  @ValidateNested()
  @Type(() => PortalActorDto)
  actor!: PortalActorDto;

  @ApiPropertyOptional({
    enum: PORTAL_SCOPES,
    isArray: true,
    nullable: true,
    minItems: 1,
    uniqueItems: true,
    description: 'Absent: all scopes of this token. A scope that the token does not have gets 403.',
  })
  @Optional()
  @IsArray({ message: 'must be a list of scopes' })
  @ArrayNotEmpty({ message: 'must not be empty; omit it for all' })
  @ArrayUnique({ message: 'must not repeat a scope' })
  @IsIn(PORTAL_SCOPES, { each: true, message: 'must hold known scopes' })
  scopes?: PortalScope[] | null;

  @ApiPropertyOptional({ enum: MODES, isArray: true, nullable: true, minItems: 1, uniqueItems: true })
  @Optional()
  @IsArray({ message: 'must be a list of modes' })
  @ArrayNotEmpty({ message: 'must not be empty; omit it for both' })
  @ArrayUnique({ message: 'must not repeat a mode' })
  @IsIn(MODES, { each: true, message: `must hold only ${MODES.join(', ')}` })
  modes?: Mode[] | null;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_URL,
    format: 'uri',
    pattern: '^https?://',
    example: 'https://portal.example/partners/17',
    description:
      'The portal sends the user here when the session has ended, or when an action needs a new sign-in.',
  })
  @Optional()
  @SingleLineText(MAX_URL)
  @ValidateBy({
    name: 'webUrl',
    validator: { validate: isWebUrl, defaultMessage: () => 'must be an absolute http or https URL' },
  })
  return_url?: string | null;

  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: TTL_SECONDS.min,
    maximum: TTL_SECONDS.max,
    default: TTL_SECONDS.usual,
  })
  @Optional()
  @IsInt({ message: 'must be a whole number of seconds' })
  @Min(TTL_SECONDS.min, { message: `must be at least ${TTL_SECONDS.min}` })
  @Max(TTL_SECONDS.max, { message: `must be at most ${TTL_SECONDS.max}` })
  ttl_seconds?: number | null;
}

/** The portal renders it as a link, so `javascript:` must not pass. */
function isWebUrl(text: unknown): boolean {
  return typeof text === 'string' && /^https?:\/\//i.test(text) && URL.canParse(text);
}

export function toPortalSessionTerms(body: CreatePortalSessionDto): PortalSessionTerms {
  return {
    actorId: body.actor.id,
    actorName: body.actor.name ?? null,
    scopes: body.scopes ?? null,
    modes: body.modes ?? [...MODES],
    returnUrl: body.return_url ?? null,
    ttlSeconds: body.ttl_seconds ?? TTL_SECONDS.usual,
  };
}
