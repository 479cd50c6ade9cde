import { ApiProperty } from '@nestjs/swagger';
import { MODES, type Mode } from '../../common/mode.js';
import { mapPage, type Page } from '../../common/page.js';
import { MAX_COUNTED } from '../endpoint-stats.repository.js';
import { type Cause, CAUSES } from '../failure-causes.js';
import type { ShownEndpoint } from '../show-endpoints.js';
import { SIGNATURE_SCHEMES, type SignatureScheme } from '../signature.js';
import { EVENT_TYPES_RULE, type Subscription, SUBSCRIPTIONS } from '../subscriptions.js';
import {
  type DisabledReason,
  ENDPOINT_STATUSES,
  endpointStatus,
  type EndpointStatus,
} from '../webhook-endpoint.entity.js';

const AT_LEAST = `Number of deliveries; ${MAX_COUNTED} means that many or more.`;

export class AttemptCountsResponse {
  @ApiProperty({ type: 'integer', example: 57 })
  succeeded!: number;

  @ApiProperty({ type: 'integer', example: 26 })
  failed!: number;
}

export class DeliveryCountsResponse {
  @ApiProperty({ type: 'integer', example: 57 })
  delivered!: number;

  @ApiProperty({ type: 'integer', example: 2, description: 'Deliveries whose last attempt failed.' })
  failed!: number;

  @ApiProperty({
    type: 'integer',
    maximum: MAX_COUNTED,
    example: 24,
    description: 'Deliveries that are pending or held now, whatever their age.',
  })
  pending!: number;
}

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

  @ApiProperty({ enum: SUBSCRIPTIONS, isArray: true, nullable: true, description: EVENT_TYPES_RULE })
  event_types!: readonly Subscription[] | null;

  @ApiProperty({
    type: 'array',
    items: { type: 'integer', minimum: 1, maximum: 100 },
    nullable: true,
    description: 'Percentages of `esim.usage.level`. Null means none.',
  })
  usage_levels!: readonly number[] | null;

  @ApiProperty({ enum: SIGNATURE_SCHEMES, isArray: true, example: ['document'] })
  signature_schemes!: readonly SignatureScheme[];

  @ApiProperty({ enum: ENDPOINT_STATUSES })
  status!: EndpointStatus;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'A block ends automatically.',
  })
  blocked_until!: string | null;

  @ApiProperty({
    type: 'integer',
    description: 'A 2xx resets it to 0. The fifth block disables the endpoint.',
  })
  consecutive_blocks!: number;

  @ApiProperty({ enum: ['consecutive_blocks', 'manual'], nullable: true })
  disabled_reason!: DisabledReason | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Null if the endpoint is enabled, or if the time is unknown.',
  })
  disabled_at!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The old signing secret also signs until this time; null if there is none.',
  })
  previous_secret_until!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'The time of the last 2xx. Tests do not count.',
  })
  last_success_at!: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description:
      'The first failed attempt after the last success; null if no attempt has failed since. Tests do not count.',
  })
  failing_since!: string | null;

  @ApiProperty({
    enum: CAUSES,
    nullable: true,
    description: 'The cause of the failure at `failing_since`, as `cause` of an explanation.',
  })
  failing_cause!: Cause | null;

  @ApiProperty({ type: AttemptCountsResponse, description: 'Attempts of the last 24 hours, without tests.' })
  attempts_24h!: AttemptCountsResponse;

  @ApiProperty({
    type: DeliveryCountsResponse,
    description:
      'Deliveries that ended in the last 24 hours, without tests. One delivery may take several attempts.',
  })
  deliveries_24h!: DeliveryCountsResponse;

  @ApiProperty({ type: 'integer', maximum: MAX_COUNTED, description: AT_LEAST })
  pending_count!: number;

  @ApiProperty({ type: 'integer', maximum: MAX_COUNTED, description: AT_LEAST })
  held_count!: number;

  @ApiProperty({
    type: 'integer',
    description: 'The number of deliveries that enabling with `failed: resend` would resend.',
  })
  failed_since_last_success!: number;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  updated_at!: string;
}

export class CreatedWebhookEndpointResponse extends WebhookEndpointResponse {
  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Shown only in this response; null when the response is replayed.',
  })
  secret!: string | null;
}

export class RotatedWebhookSecretResponse extends CreatedWebhookEndpointResponse {}

export class DeletedWebhookEndpointResponse {
  @ApiProperty({ type: String, example: 'whe_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: Boolean, example: true })
  deleted!: true;
}

export function toEndpointResponse({ endpoint, figures }: ShownEndpoint): WebhookEndpointResponse {
  const { lastDay } = figures;
  const until = endpoint.rotating ? endpoint.previousSecretUntil : null;
  return {
    id: endpoint.id,
    partner_id: endpoint.partnerId,
    mode: endpoint.mode,
    url: endpoint.url,
    description: endpoint.description,
    event_types: endpoint.eventTypes,
    usage_levels: endpoint.usageLevels,
    signature_schemes: endpoint.signatureSchemes,
    status: endpointStatus(endpoint),
    blocked_until: endpoint.blocked ? (endpoint.blockedUntil?.toISOString() ?? null) : null,
    consecutive_blocks: endpoint.consecutiveBlocks,
    disabled_reason: endpoint.disabledReason,
    disabled_at: endpoint.disabledAt?.toISOString() ?? null,
    previous_secret_until: until?.toISOString() ?? null,
    last_success_at: figures.lastSuccessAt?.toISOString() ?? null,
    failing_since: figures.failing?.since.toISOString() ?? null,
    failing_cause: figures.failing?.cause ?? null,
    attempts_24h: { succeeded: lastDay.delivered, failed: lastDay.failedAttempts },
    deliveries_24h: { delivered: lastDay.delivered, failed: lastDay.givenUp, pending: figures.waiting },
    pending_count: endpoint.enabled ? figures.waiting : 0,
    held_count: endpoint.enabled ? 0 : figures.waiting,
    failed_since_last_success: figures.failedSinceLastSuccess,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}

export function toEndpointPage(page: Page<ShownEndpoint>): Page<WebhookEndpointResponse> {
  return mapPage(page, toEndpointResponse);
}

export function toCreatedEndpointResponse(
  shown: ShownEndpoint,
  secret: string,
): CreatedWebhookEndpointResponse {
  return { ...toEndpointResponse(shown), secret };
}

export function toRotatedSecretResponse(shown: ShownEndpoint, secret: string): RotatedWebhookSecretResponse {
  return toCreatedEndpointResponse(shown, secret);
}
