import { ApiProperty } from '@nestjs/swagger';
import { ERROR_CODES, type ErrorCode } from '../../common/errors/index.js';
import { MODES, type Mode } from '../../common/mode.js';
import type { ApiCallEntity } from '../api-call.entity.js';

export class LoggedCallResponse {
  @ApiProperty({ type: String, example: 'req_01KAEXAMPLE000000000000000' })
  request_id!: string;

  @ApiProperty({ type: String, nullable: true, description: "The client's own `X-Request-Id`." })
  client_request_id!: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'Null if the call had no known key.' })
  key_id!: string | null;

  @ApiProperty({ type: String, nullable: true })
  partner_id!: string | null;

  @ApiProperty({ enum: MODES, nullable: true, type: String })
  mode!: Mode | null;

  @ApiProperty({ type: String, example: 'GET' })
  method!: string;

  @ApiProperty({ type: String, nullable: true, example: '/v1/orders' })
  route!: string | null;

  @ApiProperty({
    type: String,
    example: '/v1/orders',
    description: 'Without the query; at most 200 characters.',
  })
  path!: string;

  @ApiProperty({
    type: 'integer',
    example: 200,
    description: '499: the client closed the connection before the response.',
  })
  status!: number;

  @ApiProperty({ enum: ERROR_CODES, nullable: true, type: String })
  error_code!: ErrorCode | null;

  @ApiProperty({ type: Number, example: 3.25, description: 'Milliseconds.' })
  latency_ms!: number;

  @ApiProperty({
    type: String,
    example: '203.0.113.7',
    description: "The client's address, as used for allow-lists.",
  })
  remote_address!: string;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The first call, if this call replayed its response.',
  })
  replay_of!: string | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description:
      'After 60 calls of a key with the same status in a minute, one row represents the rest: the number of calls. The row shows the last one.',
  })
  suppressed!: number | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'The end of the response.' })
  created_at!: string;
}

export function toCallResponse(call: ApiCallEntity): LoggedCallResponse {
  return {
    request_id: call.id,
    client_request_id: call.clientRequestId,
    key_id: call.keyId,
    partner_id: call.partnerId,
    mode: call.mode,
    method: call.method,
    route: call.route,
    path: call.path,
    status: call.status,
    error_code: call.errorCode,
    latency_ms: call.latencyMs,
    remote_address: call.remoteAddress,
    replay_of: call.replayOf,
    suppressed: call.suppressed,
    created_at: call.createdAt.toISOString(),
  };
}
