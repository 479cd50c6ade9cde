import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ERROR_CODES, type ErrorCode } from '../../common/errors/index.js';
import { MODES, type Mode } from '../../common/mode.js';
import { ListQueryDto, Optional, QueryInteger, Rfc3339, ShortText } from '../../infra/http/index.js';
import type { CallFilters } from '../call-log.repository.js';

/** Filters of a partner's own calls; the API key determines their mode. */
export class OwnCallsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ type: String, maxLength: 64 })
  @Optional()
  @ShortText(64)
  request_id?: string;

  @ApiPropertyOptional({ type: String, maxLength: 64 })
  @Optional()
  @ShortText(64)
  key_id?: string;

  @ApiPropertyOptional({ type: String, maxLength: 32, example: 'POST' })
  @Optional()
  @ShortText(32)
  method?: string;

  @ApiPropertyOptional({
    type: String,
    maxLength: 200,
    example: '/v1/orders/:id',
    description: 'The route pattern, not the path.',
  })
  @Optional()
  @ShortText(200)
  route?: string;

  @ApiPropertyOptional({ type: 'integer', minimum: 100, maximum: 599 })
  @Optional()
  @QueryInteger({ min: 100, max: 599 })
  status?: number;

  @ApiPropertyOptional({ enum: ERROR_CODES, description: 'The `code` of the error body.' })
  @Optional()
  @IsIn(ERROR_CODES, { message: 'must be an error code of the service' })
  error_code?: ErrorCode;

  @ApiPropertyOptional({
    type: String,
    maxLength: 64,
    description: 'The request id of the first call with the same Idempotency-Key.',
  })
  @Optional()
  @ShortText(64)
  replay_of?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Inclusive.' })
  @Optional()
  @Rfc3339()
  created_after?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Exclusive.' })
  @Optional()
  @Rfc3339()
  created_before?: string;
}

export class CallsQueryDto extends OwnCallsQueryDto {
  @ApiPropertyOptional({ enum: MODES })
  @Optional()
  @IsIn(MODES, { message: `must be one of ${MODES.join(', ')}` })
  mode?: Mode;
}

export function toCallFilters(query: OwnCallsQueryDto & { readonly mode?: Mode }): CallFilters {
  return {
    requestId: query.request_id,
    keyId: query.key_id,
    method: query.method,
    route: query.route,
    status: query.status,
    errorCode: query.error_code,
    mode: query.mode,
    replayOf: query.replay_of,
    createdAfter: query.created_after === undefined ? undefined : new Date(query.created_after),
    createdBefore: query.created_before === undefined ? undefined : new Date(query.created_before),
  };
}
