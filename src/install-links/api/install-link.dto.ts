import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsBoolean, IsIn, IsInt, Max, Min } from 'class-validator';
import { Optional } from '../../infra/http/index.js';
import type { IdempotentResponse } from '../../infra/idempotency/index.js';
import type { InstallLinkEntity } from '../install-link.entity.js';
import type { CreatedInstallLink, InstallLinkTerms } from '../install-links.service.js';
import { type Language, LANGUAGES } from '../languages.js';

const DEFAULT_DAYS = 30;
const MAX_DAYS = 365;

export class CreateInstallLinkDto {
  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: MAX_DAYS,
    description: `Lifetime of the link in days; ${DEFAULT_DAYS} by default. The eSIM's own validity does not change.`,
    example: DEFAULT_DAYS,
  })
  @Optional()
  @IsInt({ message: 'must be a whole number of days' })
  @Min(1, { message: 'must be at least 1' })
  @Max(MAX_DAYS, { message: `must be at most ${MAX_DAYS}` })
  expires_in_days?: number | null;

  @ApiPropertyOptional({
    enum: LANGUAGES,
    nullable: true,
    description: "Language of the page. By default the page uses the language of the traveler's browser.",
  })
  @Optional()
  @IsIn(LANGUAGES, { message: `must be one of ${LANGUAGES.join(', ')}` })
  locale?: Language | null;

  @ApiPropertyOptional({
    type: Boolean,
    nullable: true,
    description: 'Whether the page asks for an access code, which you send separately. Default: false.',
  })
  @Optional()
  @IsBoolean({ message: 'must be true or false' })
  access_code?: boolean | null;
}

export function toInstallLinkTerms(body: CreateInstallLinkDto | undefined): InstallLinkTerms {
  return {
    expiresInDays: body?.expires_in_days ?? DEFAULT_DAYS,
    locale: body?.locale ?? null,
    accessCode: body?.access_code ?? false,
  };
}

export class InstallLinkResponse {
  @ApiProperty({ type: String, example: 'ilk_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ enum: LANGUAGES, nullable: true })
  locale!: Language | null;

  @ApiProperty({ type: String, format: 'date-time' })
  expires_at!: string;

  @ApiProperty({
    type: 'integer',
    example: 0,
    description: 'How often the page was shown, without link previews of messengers.',
  })
  opened_count!: number;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, example: null })
  last_opened_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export class CreatedInstallLinkResponse extends InstallLinkResponse {
  @ApiProperty({
    type: String,
    nullable: true,
    example: 'https://install.example.com/i/<token>',
    description:
      'Shown only in this response; null when the response is replayed. Anyone who has it can install the eSIM.',
  })
  url!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: '40718236',
    description:
      'Shown only in this response; null without an access code, and when the response is replayed.',
  })
  access_code!: string | null;
}

export class RevokedInstallLinkResponse {
  @ApiProperty({ type: String, example: 'ilk_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ type: Boolean, enum: [true] })
  revoked!: true;
}

export function toInstallLinkResponse(link: InstallLinkEntity): InstallLinkResponse {
  return {
    id: link.id,
    esim_id: link.esimId,
    locale: link.locale,
    expires_at: link.expiresAt.toISOString(),
    opened_count: link.openedCount,
    last_opened_at: link.lastOpenedAt?.toISOString() ?? null,
    created_at: link.createdAt.toISOString(),
  };
}

/** The stored response, and therefore every replay of it, has neither link nor access code (D20). */
export function toShownOnce({ link, url, accessCode }: CreatedInstallLink): IdempotentResponse {
  const data: CreatedInstallLinkResponse = { ...toInstallLinkResponse(link), url, access_code: accessCode };
  return { data, secretFields: ['url', 'access_code'] };
}
