import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { ShortText } from '../../infra/http/index.js';
import { type Hit, HIT_TYPES } from '../search.js';

const MAX_TEXT = 200;

export class SearchQueryDto {
  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_TEXT,
    example: 'booking-4711',
    description:
      'The id of an order, eSIM, top-up, refund request, event, delivery, endpoint, request or partner; an ICCID; the reference of an order or top-up; or the start of the name or e-mail address of a partner.',
  })
  @ShortText(MAX_TEXT)
  q!: string;
}

export class SearchHitResponse {
  @ApiProperty({ enum: HIT_TYPES })
  type!: Hit['type'];

  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ type: String, nullable: true, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string | null;

  @ApiProperty({ enum: MODES, nullable: true, type: String, description: 'Null for a partner.' })
  mode!: Mode | null;

  @ApiProperty({
    type: String,
    example: 'booking-4711',
    description:
      'The reference, or the package without one; the ICCID; the event type; the URL; the method and path; or the name.',
  })
  label!: string;

  @ApiProperty({ type: String, nullable: true, example: 'issued' })
  status!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export function toSearchHitResponse(hit: Hit): SearchHitResponse {
  return {
    type: hit.type,
    id: hit.id,
    partner_id: hit.partnerId,
    mode: hit.mode,
    label: hit.label,
    status: hit.status,
    created_at: hit.createdAt.toISOString(),
  };
}
