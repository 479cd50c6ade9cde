import { createHash } from 'node:crypto';
import type { Span, SpanRequest } from '../../infra/tracing/index.js';
import type { AttemptResult } from './attempt-result.js';
import type { StartedDelivery } from './deliveries.repository.js';
import type { DeliveryTrace } from './delivery-traces.repository.js';

/** Partner-written text cannot match this, because its quotes are escaped in the body. */
const ORDER_ID = /"order_id":"(ord_[0-9A-HJKMNP-TV-Z]{26})"/;

/** The order id in the body: every event has one, a test has none. */
export function orderOf({ body }: StartedDelivery): string | null {
  return ORDER_ID.exec(body ?? '')?.[1] ?? null;
}

/** Omits URL, headers and body: a receiver's address may hold a secret, and an event's body an ICCID (D53). */
export function spanOfAttempt(delivery: StartedDelivery, trace: DeliveryTrace | null): SpanRequest {
  const { id: deliveryId, endpointId, eventType, mode } = delivery;
  const orderId = orderOf(delivery);
  return {
    name: `webhook ${eventType}`,
    kind: 'client',
    ...(trace ? placeOfAttempt(deliveryId, trace) : { parent: null }),
    concerns: { deliveryId, endpointId, ...(orderId === null ? {} : { orderId }) },
    attributes: {
      'esim.event_type': eventType,
      'esim.mode': mode,
      ...(trace ? { 'esim.attempt': trace.number } : {}),
    },
  };
}

/** @param attempt null: nothing was sent */
export function describeAttempt(span: Span, attempt: AttemptResult | null): void {
  if (!attempt) {
    span.set({ 'esim.outcome': 'not_sent' });
    return;
  }
  const { outcome, statusCode, error } = attempt;
  span.set({
    'esim.outcome': outcome,
    'http.request.method': 'POST',
    'http.response.status_code': statusCode,
    'esim.status_class': statusCode === null ? null : `${Math.floor(statusCode / 100)}xx`,
  });
  if (outcome !== 'delivered') span.fail(error ?? outcome);
}

/**
 * Places the attempt in the trace of its cause, or in a trace of its own delivery. Ids are derived from the delivery
 * and the attempt number. A retry by any process can therefore link to the attempt before it without storing anything.
 */
function placeOfAttempt(
  deliveryId: string,
  { cause, number }: DeliveryTrace,
): Pick<SpanRequest, 'parent' | 'links' | 'ids'> {
  const traceId = cause?.traceId ?? digits(deliveryId, 32);
  const spanOf = (nth: number): string => digits(`${deliveryId} ${nth}`, 16);
  const before = { traceId, spanId: spanOf(number - 1), sampled: cause?.sampled ?? true };
  return { parent: cause, links: number > 1 ? [before] : [], ids: { traceId, spanId: spanOf(number) } };
}

/** `count` hexadecimal digits that are unique to the text. */
function digits(text: string, count: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, count);
}
