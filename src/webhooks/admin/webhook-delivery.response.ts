import { ApiProperty } from '@nestjs/swagger';
import {
  ATTEMPT_OUTCOMES,
  ATTEMPT_PHASES,
  type AttemptOutcome,
  type AttemptPhase,
  DELIVERY_EVENT_TYPES,
  DELIVERY_KINDS,
  DELIVERY_STATUSES,
  type DeliveryEventType,
  type DeliveryKind,
  type DeliveryStatus,
  type LoggedAttempt,
} from '../delivery.js';
import type { DeliveryWithLog } from '../webhook-deliveries.repository.js';
import { deliveryStatus, type WebhookDeliveryEntity } from '../webhook-delivery.entity.js';

/** The last attempt as a row of the delivery log; the delivery's own page has every attempt in full. */
export class LastAttemptResponse {
  @ApiProperty({ type: 'integer', minimum: 1 })
  number!: number;

  @ApiProperty({ type: String, format: 'date-time' })
  started_at!: string;

  @ApiProperty({ enum: ATTEMPT_OUTCOMES })
  outcome!: AttemptOutcome;

  @ApiProperty({ type: 'integer', nullable: true })
  status_code!: number | null;

  @ApiProperty({ type: 'integer', description: 'Time until the status line, or until the attempt failed.' })
  latency_ms!: number;

  @ApiProperty({ type: String, nullable: true, example: 'connect: ECONNREFUSED' })
  error!: string | null;
}

/** An attempt that is waiting for its response. */
export class CurrentAttemptResponse {
  @ApiProperty({ type: 'integer', minimum: 1 })
  number!: number;

  @ApiProperty({ type: String, format: 'date-time' })
  started_at!: string;

  @ApiProperty({
    enum: ATTEMPT_PHASES,
    nullable: true,
    description:
      'Null for the first one or two seconds, and longer while requests to a new host are paced. `waiting`: until the response has been read.',
  })
  phase!: AttemptPhase | null;
}

export class WebhookDeliveryResponse {
  @ApiProperty({ type: String, example: 'dlv_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ type: String, example: 'whe_01KAEXAMPLE000000000000000' })
  endpoint_id!: string;

  @ApiProperty({ type: String, nullable: true, description: 'Null for a test.' })
  event_id!: string | null;

  @ApiProperty({ enum: DELIVERY_EVENT_TYPES })
  event_type!: DeliveryEventType;

  @ApiProperty({ enum: DELIVERY_KINDS })
  kind!: DeliveryKind;

  @ApiProperty({ enum: DELIVERY_STATUSES, description: '`held`: waiting because the endpoint is disabled.' })
  status!: DeliveryStatus;

  @ApiProperty({ type: 'integer', description: 'The number of attempts, including interrupted ones.' })
  attempt_count!: number;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Null unless the delivery is pending.',
  })
  next_attempt_at!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  delivered_at!: string | null;

  @ApiProperty({
    type: () => LastAttemptResponse,
    nullable: true,
    description: 'Null before the first attempt.',
  })
  last_attempt!: LastAttemptResponse | null;

  @ApiProperty({
    type: () => CurrentAttemptResponse,
    nullable: true,
    description: 'The attempt in progress; null if there is none.',
  })
  current_attempt!: CurrentAttemptResponse | null;
}

/** Duration of each phase of an attempt. */
export class WebhookAttemptPhasesResponse {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Null if the attempt did not reach this phase, or reused an open connection.',
  })
  dns_ms!: number | null;

  @ApiProperty({ type: 'integer', nullable: true, description: 'Null in the same cases.' })
  connect_ms!: number | null;

  @ApiProperty({ type: 'integer', nullable: true, description: 'Null in the same cases.' })
  tls_ms!: number | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Measured from the start of the attempt. Null if no byte arrived.',
  })
  first_byte_ms!: number | null;

  @ApiProperty({ type: 'integer', description: 'Measured from the start of the attempt.' })
  total_ms!: number;
}

/** One attempt in full. */
export class WebhookAttemptResponse extends LastAttemptResponse {
  @ApiProperty({ type: () => WebhookAttemptPhasesResponse, nullable: true })
  phases!: WebhookAttemptPhasesResponse | null;

  @ApiProperty({
    type: Object,
    nullable: true,
    description: 'The headers that were sent, without the signatures.',
  })
  request_headers!: Readonly<Record<string, string>> | null;

  @ApiProperty({ type: Object, nullable: true, description: 'The response headers, at most 8 KB.' })
  response_headers!: Readonly<Record<string, string>> | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The response body, at most 16 KB, or 2 KB for a 2xx.',
  })
  response_body!: string | null;
}

export class WebhookDeliveryWithAttemptsResponse extends WebhookDeliveryResponse {
  @ApiProperty({ type: () => [WebhookAttemptResponse] })
  attempts!: readonly WebhookAttemptResponse[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The request body. Every attempt sends the same bytes.',
  })
  request_body!: string | null;
}

export function toDeliveryResponse(delivery: WebhookDeliveryEntity): WebhookDeliveryResponse {
  const status = deliveryStatus(delivery);
  return {
    id: delivery.id,
    endpoint_id: delivery.endpointId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    kind: delivery.kind,
    status,
    attempt_count: delivery.attemptCount,
    next_attempt_at: status === 'pending' ? (delivery.nextAttemptAt?.toISOString() ?? null) : null,
    created_at: delivery.createdAt.toISOString(),
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
    last_attempt: toLastAttempt(delivery),
    current_attempt: toCurrentAttempt(delivery),
  };
}

function toCurrentAttempt({
  inFlight,
  startedAt,
  currentPhase,
  attemptCount,
}: WebhookDeliveryEntity): CurrentAttemptResponse | null {
  if (!inFlight || startedAt === null) return null;
  return { number: attemptCount + 1, started_at: startedAt.toISOString(), phase: currentPhase };
}

function toLastAttempt(delivery: WebhookDeliveryEntity): LastAttemptResponse | null {
  const { lastOutcome, lastStartedAt, lastStatusCode, lastLatencyMs, lastError, attemptCount } = delivery;
  if (lastOutcome === null || lastStartedAt === null) return null;
  return {
    number: attemptCount,
    started_at: lastStartedAt.toISOString(),
    outcome: lastOutcome,
    status_code: lastStatusCode,
    latency_ms: lastLatencyMs ?? 0,
    error: lastError,
  };
}

export function toDeliveryWithAttemptsResponse({
  delivery,
  attempts,
  body,
}: DeliveryWithLog): WebhookDeliveryWithAttemptsResponse {
  return { ...toDeliveryResponse(delivery), attempts: attempts.map(toAttemptResponse), request_body: body };
}

function toAttemptResponse(attempt: LoggedAttempt): WebhookAttemptResponse {
  return {
    number: attempt.number,
    started_at: attempt.startedAt.toISOString(),
    outcome: attempt.outcome,
    status_code: attempt.statusCode,
    latency_ms: attempt.latencyMs,
    error: attempt.error,
    phases: attempt.phases,
    request_headers: attempt.requestHeaders,
    response_headers: attempt.responseHeaders,
    response_body: attempt.responseBody,
  };
}
