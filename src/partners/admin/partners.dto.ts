import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsEmail, IsIn, ValidateIf } from 'class-validator';
import { LINE_PATTERN } from '../../common/plain-text.js';
import { compose, ListQueryDto, Optional, SingleLineText } from '../../infra/http/index.js';
import {
  PARTNER_STATUSES,
  type PartnerChanges,
  type PartnerEntity,
  type PartnerStatus,
} from '../partners.repository.js';

const MAX_NAME = 200;
const MAX_EMAIL = 254;

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
}

export class PartnersQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: PARTNER_STATUSES })
  @Optional()
  @IsIn(PARTNER_STATUSES, { message: `must be one of ${PARTNER_STATUSES.join(', ')}` })
  status?: PartnerStatus;
}

export function toPartnerChanges({ name, email }: UpdatePartnerDto): PartnerChanges {
  return { ...(name === undefined ? {} : { name }), ...(email === undefined ? {} : { email }) };
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

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export function toPartnerResponse(partner: PartnerEntity): PartnerResponse {
  return {
    id: partner.id,
    name: partner.name,
    email: partner.email,
    status: partner.status,
    created_at: partner.createdAt.toISOString(),
    updated_at: partner.updatedAt.toISOString(),
  };
}
