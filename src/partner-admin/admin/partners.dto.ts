import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  IsEmail,
  IsIn,
  IsInt,
  IsObject,
  Matches,
  Max,
  Min,
  ValidateBy,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import type { Money } from '../../common/money.js';
import { isBrandUrl, type PartnerBrand, toPartnerBrand } from '../../common/partner-brand.js';
import { LINE_PATTERN, LINES_PATTERN } from '../../common/plain-text.js';
import {
  BrandResponse,
  compose,
  ListQueryDto,
  MoneyResponse,
  MultiLineText,
  Optional,
  SingleLineText,
} from '../../infra/http/index.js';
import {
  PARTNER_STATUSES,
  type PartnerChanges,
  type PartnerEntity,
  type PartnerStatus,
} from '../../partners/index.js';

const MAX_NAME = 200;
const MAX_EMAIL = 254;
const MAX_BRAND_NAME = 60;
const MAX_URL = 2_048;
const MAX_NOTE = 500;
const MAX_AMOUNT = 1_000_000_000_000;

function Email(): PropertyDecorator {
  return compose(
    // The local part of an address may contain any character, including one that reverses the direction of text.
    SingleLineText(MAX_EMAIL),
    IsEmail({}, { message: 'must be an email address' }),
  );
}

export class CreatePartnerDto {
  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_NAME,
    pattern: LINE_PATTERN,
    example: 'Acme Travel',
  })
  @SingleLineText(MAX_NAME)
  name!: string;

  @ApiPropertyOptional({ type: String, format: 'email', nullable: true, maxLength: MAX_EMAIL })
  @Optional()
  @Email()
  email?: string | null;
}

/** Null removes the URL. */
function HttpsUrl(example: string, description: string): PropertyDecorator {
  return compose(
    ApiPropertyOptional({
      type: String,
      nullable: true,
      format: 'uri',
      pattern: '^https://',
      maxLength: MAX_URL,
      example,
      description,
    }),
    Optional(),
    SingleLineText(MAX_URL),
    ValidateBy({
      name: 'httpsUrl',
      validator: { validate: isBrandUrl, defaultMessage: () => 'must be an absolute https URL' },
    }),
  );
}

/** Absent fields do not change; null removes a value. */
export class BrandDto {
  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_BRAND_NAME,
    pattern: LINE_PATTERN,
    example: 'Acme Travel',
    description: "Null shows the partner's name.",
  })
  @Optional()
  @SingleLineText(MAX_BRAND_NAME)
  name?: string | null;

  @HttpsUrl('https://acme.example/logo.svg', 'An image, shown 28 pixels high or more.')
  logo_url?: string | null;

  @ApiPropertyOptional({ type: String, nullable: true, pattern: '^#[0-9a-fA-F]{6}$', example: '#0a66c2' })
  @Optional()
  @Matches(/^#[0-9a-fA-F]{6}$/, { message: 'must be a color such as #0a66c2' })
  accent?: string | null;

  @HttpsUrl('https://acme.example/help', "The partner's help for its travelers.")
  help_url?: string | null;
}

/** The low-balance threshold of one currency. */
export class LowBalanceDto {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 0,
    maximum: MAX_AMOUNT,
    example: 10_000,
    description: 'Minor units. The balance is low if the available amount is below this; null: never.',
  })
  // Not @Optional(), which would treat an absent field as null.
  @ValidateIf((_, value) => value !== null)
  @IsInt({ message: 'must be a whole number of minor units, or null' })
  @Min(0, { message: 'must not be negative' })
  @Max(MAX_AMOUNT, { message: `must be at most ${MAX_AMOUNT}` })
  amount!: number | null;

  @ApiProperty({ type: String, pattern: '^[A-Z]{3}$', example: 'USD', description: 'ISO 4217.' })
  @Matches(/^[A-Z]{3}$/, { message: 'must be three upper-case letters' })
  currency!: string;
}

/** An object that may be absent, but not null. */
function Nested(model: new () => object): PropertyDecorator {
  return compose(
    ApiPropertyOptional({ type: model }),
    ValidateIf((_, value) => value !== undefined),
    IsObject({ message: 'must be an object' }),
    ValidateNested(),
    Type(() => model),
  );
}

/** Absent fields do not change; `email: null` removes the address. */
export class UpdatePartnerDto {
  @ApiPropertyOptional({ type: String, minLength: 1, maxLength: MAX_NAME, pattern: LINE_PATTERN })
  // Not @Optional(), which would accept null: a partner always has a name.
  @ValidateIf((_, value) => value !== undefined)
  @SingleLineText(MAX_NAME)
  name?: string;

  @ApiPropertyOptional({ type: String, format: 'email', nullable: true, maxLength: MAX_EMAIL })
  @Optional()
  @Email()
  email?: string | null;

  @Nested(BrandDto)
  brand?: BrandDto;

  @Nested(LowBalanceDto)
  low_balance?: LowBalanceDto;
}

export class SuspendPartnerDto {
  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    example: 'Invoice 118 is overdue.',
    description: 'For the portal team and the audit log. The partner does not see it.',
  })
  @Optional()
  @MultiLineText(MAX_NOTE)
  reason?: string | null;
}

export class ReinstatePartnerDto {
  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    example: 'Invoice 118 is paid.',
    description: 'For the audit log.',
  })
  @Optional()
  @MultiLineText(MAX_NOTE)
  note?: string | null;
}

export class PartnersQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: PARTNER_STATUSES })
  @Optional()
  @IsIn(PARTNER_STATUSES, { message: `must be one of ${PARTNER_STATUSES.join(', ')}` })
  status?: PartnerStatus;
}

export function toPartnerChanges({ name, email, brand }: UpdatePartnerDto): PartnerChanges {
  return {
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(brand === undefined ? {} : { brand: toBrandChanges(brand) }),
  };
}

/** Only the fields that were sent, because a stored brand keeps the others. */
export function toBrandChanges({ name, logo_url, accent, help_url }: BrandDto): Partial<PartnerBrand> {
  return {
    ...(name === undefined ? {} : { name }),
    ...(logo_url === undefined ? {} : { logo_url }),
    ...(accent === undefined ? {} : { accent }),
    ...(help_url === undefined ? {} : { help_url }),
  };
}

export class PartnerResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'Acme Travel' })
  name!: string;

  @ApiProperty({ type: String, format: 'email', nullable: true })
  email!: string | null;

  @ApiProperty({ enum: PARTNER_STATUSES })
  status!: PartnerStatus;

  @ApiProperty({
    type: String,
    nullable: true,
    example: null,
    description: 'The reason of the current suspension.',
  })
  suspended_reason!: string | null;

  @ApiProperty({ type: BrandResponse })
  brand!: BrandResponse;

  @ApiProperty({
    type: [MoneyResponse],
    example: [{ amount: 10_000, currency: 'USD' }],
    description: 'The low-balance threshold of each currency that has one.',
  })
  low_balances!: readonly MoneyResponse[];

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export function toPartnerResponse(
  partner: PartnerEntity,
  lowBalances: ReadonlyMap<string, readonly Money[]>,
): PartnerResponse {
  return {
    id: partner.id,
    name: partner.name,
    email: partner.email,
    status: partner.status,
    suspended_reason: partner.suspendedReason,
    brand: toPartnerBrand(partner.brand),
    low_balances: lowBalances.get(partner.id) ?? [],
    created_at: partner.createdAt.toISOString(),
    updated_at: partner.updatedAt.toISOString(),
  };
}
