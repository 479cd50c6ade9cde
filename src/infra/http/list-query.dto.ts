import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsString, MaxLength } from 'class-validator';
import type { ListOptions } from '../database/index.js';
import { Optional, QueryInteger } from './fields.js';

export const DEFAULT_LIMIT = 25;
export const MAX_LIMIT = 100;

/** `limit` and `cursor` of every list (D11). */
export class ListQueryDto {
  @ApiPropertyOptional({ type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT })
  @Optional()
  @QueryInteger({ min: 1, max: MAX_LIMIT })
  limit?: number;

  @ApiPropertyOptional({ type: String, description: 'The `next_cursor` of the page before.' })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(1_024, { message: 'must have at most 1024 characters' })
  cursor?: string;
}

/** The list options of a validated query. */
export function toListOptions(query: ListQueryDto): ListOptions {
  return { limit: query.limit ?? DEFAULT_LIMIT, cursor: query.cursor ?? undefined };
}
