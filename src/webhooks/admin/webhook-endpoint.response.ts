import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { EVENT_TYPES, type EventType } from '../../events/index.js';
import { SIGNATURE_SCHEMES, type SignatureScheme } from '../signature.js';
import {
  type DisabledReason,
  ENDPOINT_STATUSES,
  endpointStatus,
  type EndpointStatus,
  type WebhookEndpointEntity,
} from '../webhook-endpoint.entity.js';

export class WebhookEndpointResponse {
  @ApiProperty({ type: String, example: 'whe_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({ enum: MODES })
  mode!: Mode;

  @ApiProperty({ type: String, example: 'https://partner.example/webhooks' })
  url!: string;

  @ApiProperty({ type: String, nullable: true })
  description!: string | null;

  @ApiProperty({ enum: EVENT_TYPES, isArray: true, nullable: true, description: 'Null means every type.' })
  event_types!: readonly EventType[] | null;

  @ApiProperty({ enum: SIGNATURE_SCHEMES, isArray: true, example: ['document'] })
  signature_schemes!: readonly SignatureScheme[];

  @ApiProperty({ enum: ENDPOINT_STATUSES })
  status!: EndpointStatus;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'A block ends by itself.' })
  blocked_until!: string | null;

  @ApiProperty({ type: 'integer', description: 'A 2xx sets it to 0; the fifth block disables the endpoint.' })
  consecutive_blocks!: number;

  @ApiProperty({ enum: ['consecutive_blocks', 'manual'], nullable: true })
  disabled_reason!: DisabledReason | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export class CreatedWebhookEndpointResponse extends WebhookEndpointResponse {
  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Shown in this answer only; null when it is replayed.',
  })
  secret!: string | null;
}

export class RotatedWebhookSecretResponse extends CreatedWebhookEndpointResponse {
  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The old secret signs until then.',
  })
  previous_secret_until!: string | null;
}

export class DeletedWebhookEndpointResponse {
  @ApiProperty({ type: String, example: 'whe_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: Boolean, enum: [true] })
  deleted!: true;
}

export function toEndpointResponse(endpoint: WebhookEndpointEntity): WebhookEndpointResponse {
  return {
    id: endpoint.id,
    partner_id: endpoint.partnerId,
    mode: endpoint.mode,
    url: endpoint.url,
    description: endpoint.description,
    event_types: endpoint.eventTypes,
    signature_schemes: endpoint.signatureSchemes,
    status: endpointStatus(endpoint),
    blocked_until: endpoint.blocked ? (endpoint.blockedUntil?.toISOString() ?? null) : null,
    consecutive_blocks: endpoint.consecutiveBlocks,
    disabled_reason: endpoint.disabledReason,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}

export function toCreatedEndpointResponse(
  endpoint: WebhookEndpointEntity,
  secret: string,
): CreatedWebhookEndpointResponse {
  return { ...toEndpointResponse(endpoint), secret };
}

export function toRotatedSecretResponse(
  endpoint: WebhookEndpointEntity,
  secret: string,
): RotatedWebhookSecretResponse {
  const until = endpoint.previousSecretUntil?.toISOString() ?? null;
  return { ...toCreatedEndpointResponse(endpoint, secret), previous_secret_until: until };
}
