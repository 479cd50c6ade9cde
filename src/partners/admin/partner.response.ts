import { ApiProperty } from '@nestjs/swagger';
import { type PartnerEntity, PARTNER_STATUSES, type PartnerStatus } from '../partner.entity.js';

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
