import { ApiProperty } from '@nestjs/swagger';
import { MoneyResponse } from '../infra/http/index.js';
import type { LinkUse } from '../install-links/index.js';
import { OrderEsimResponse, OrderResponse, toOrderResponse } from '../orders/index.js';
import { RefundRequestResponse, toRefundRequestResponse } from '../refunds/index.js';
import { toDeliveryResponse, WebhookDeliveryResponse } from '../webhooks/index.js';
import { type OrderPage, PAGE_ROWS } from './order-pages.js';
import { TIMELINE_KINDS, type TimelineEntry, type TimelineKind } from './timeline.js';

/** Something that happened to an order. */
export class TimelineEntryResponse {
  @ApiProperty({ type: String, format: 'date-time' })
  at!: string;

  @ApiProperty({
    enum: TIMELINE_KINDS,
    description:
      '`webhook_sent`: the latest attempt of a delivery that has not ended. New kinds may be added later.',
  })
  kind!: TimelineKind;

  @ApiProperty({ type: String, nullable: true, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  topup_id!: string | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  refund_request_id!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'evt_01KAEXAMPLE000000000000000',
    description: 'The event that reported it; null if there was none, or it is past its retention.',
  })
  event_id!: string | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  delivery_id!: string | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: null,
    description: 'The share of data used, of a `threshold` or `usage_level`.',
  })
  percent!: number | null;

  @ApiProperty({
    type: MoneyResponse,
    nullable: true,
    description:
      'The refund of a `failed`, `canceled` or `refund_approved`; the price of a `topup_accepted`.',
  })
  amount!: MoneyResponse | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: null,
    description:
      'The reason of a failure, an expiry, a refund request or an action; the profile status of `installed` and `profile_changed`; the end of an `expiring` eSIM; the event type of a webhook.',
  })
  detail!: string | null;
}

/** How often the install links of an eSIM were opened. */
export class InstallLinkUseResponse {
  @ApiProperty({ type: 'integer', example: 1, description: 'Number of links that are not revoked.' })
  count!: number;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, example: null })
  last_opened_at!: string | null;
}

export class OrderPageEsimResponse extends OrderEsimResponse {
  @ApiProperty({ type: InstallLinkUseResponse })
  install_links!: InstallLinkUseResponse;
}

/** An order with its history. */
export class OrderWithTimelineResponse extends OrderResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({
    type: String,
    example: 'req_01KAEXAMPLE000000000000000',
    description: 'The call that placed the order.',
  })
  accepted_request_id!: string;

  @ApiProperty({
    type: [TimelineEntryResponse],
    description: `Oldest first, from the latest ${PAGE_ROWS.events} events and ${PAGE_ROWS.deliveries} deliveries.`,
  })
  timeline!: readonly TimelineEntryResponse[];

  @ApiProperty({
    type: [WebhookDeliveryResponse],
    nullable: true,
    description: `The latest ${PAGE_ROWS.deliveries}, newest first; null without the scope \`webhooks:read\`.`,
  })
  deliveries!: readonly WebhookDeliveryResponse[] | null;

  @ApiProperty({ type: [OrderPageEsimResponse], example: [] })
  override esims!: readonly OrderPageEsimResponse[];

  @ApiProperty({ type: [RefundRequestResponse], description: 'Newest first.' })
  refund_requests!: readonly RefundRequestResponse[];
}

export function toOrderWithTimelineResponse(page: OrderPage): OrderWithTimelineResponse {
  const order = toOrderResponse(page);
  return {
    ...order,
    esims: order.esims.map((esim) => ({
      ...esim,
      install_links: toLinkUse(page.linkUses.get(esim.esim_id)),
    })),
    partner_id: page.order.partnerId,
    accepted_request_id: page.order.acceptedRequestId,
    timeline: page.timeline.map(toTimelineEntryResponse),
    deliveries: page.deliveries?.map(toDeliveryResponse) ?? null,
    refund_requests: page.refundRequests.map(toRefundRequestResponse),
  };
}

function toLinkUse(use: LinkUse | undefined): InstallLinkUseResponse {
  return { count: use?.count ?? 0, last_opened_at: use?.lastOpenedAt?.toISOString() ?? null };
}

function toTimelineEntryResponse(entry: TimelineEntry): TimelineEntryResponse {
  return {
    at: entry.at.toISOString(),
    kind: entry.kind,
    esim_id: entry.esimId ?? null,
    topup_id: entry.topupId ?? null,
    refund_request_id: entry.refundRequestId ?? null,
    event_id: entry.eventId ?? null,
    delivery_id: entry.deliveryId ?? null,
    percent: entry.percent ?? null,
    amount: entry.amount ?? null,
    detail: entry.detail ?? null,
  };
}
