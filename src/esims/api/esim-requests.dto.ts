import { ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { IsIn, IsInt, Matches, Max, MaxLength, Min } from 'class-validator';
import { ListQueryDto, Optional, ShortText } from '../../infra/http/index.js';
import { ESIM_STATUSES, type EsimStatus } from '../esim.js';

const MAX_CONSUMED_BYTES = 1_000_000_000_000_000;

export class EsimsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: ESIM_STATUSES })
  @Optional()
  @IsIn(ESIM_STATUSES, { message: 'must be a known status' })
  status?: EsimStatus;

  @ApiPropertyOptional({ type: String, minLength: 1, maxLength: 64 })
  @Optional()
  @ShortText(64)
  order_id?: string;

  @ApiPropertyOptional({ type: String, pattern: '^[0-9]{18,20}$' })
  @Optional()
  @MaxLength(20, { message: 'must have 18 to 20 digits' })
  @Matches(/^[0-9]{18,20}$/, { message: 'must have 18 to 20 digits' })
  iccid?: string;
}

/** Exactly one of the two fields. */
@ApiSchema({ description: 'Exactly one of the two fields.' })
export class ConsumeDto {
  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: MAX_CONSUMED_BYTES,
    example: 500_000_000,
  })
  @Optional()
  @IsInt({ message: 'must be a whole number' })
  @Min(1, { message: 'must be at least 1' })
  @Max(MAX_CONSUMED_BYTES, { message: 'must be at most 10^15' })
  bytes?: number | null;

  @ApiPropertyOptional({
    type: 'integer',
    minimum: 1,
    maximum: 100,
    description: 'Of `total_bytes`, rounded up.',
  })
  @Optional()
  @IsInt({ message: 'must be a whole number' })
  @Min(1, { message: 'must be at least 1' })
  @Max(100, { message: 'must be at most 100' })
  percent?: number | null;
}
