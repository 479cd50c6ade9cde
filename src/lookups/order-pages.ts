import { Injectable } from '@nestjs/common';
import type { AdminOrPortalPrincipal } from '../auth/index.js';
import { NotFound } from '../common/errors/index.js';
import { EventsRepository, firstEventOf } from '../events/index.js';
import { InstallLinksRepository, type LinkUse } from '../install-links/index.js';
import { type OrderWithEsims, ReadOrders } from '../orders/index.js';
import { type RefundRequestEntity, RefundRequestsRepository } from '../refunds/index.js';
import { TopupsRepository } from '../topups/index.js';
import { WebhookDeliveriesRepository, type WebhookDeliveryEntity } from '../webhooks/index.js';
import { type TimelineEntry, timelineOf } from './timeline.js';

/** Maximum rows of a kind that a page shows: the latest. */
export const PAGE_ROWS = { events: 300, deliveries: 100, topups: 100, refundRequests: 100 } as const;

/** An order with everything that happened to it. */
export interface OrderPage extends OrderWithEsims {
  readonly timeline: readonly TimelineEntry[];
  /** Newest first; null for a caller without the scope `webhooks:read`. */
  readonly deliveries: readonly WebhookDeliveryEntity[] | null;
  readonly refundRequests: readonly RefundRequestEntity[];
  /** By eSIM; missing for an eSIM without a link. */
  readonly linkUses: ReadonlyMap<string, LinkUse>;
}

/** Reads the page of an order that the caller may see. Everything else is the same 404 (D14, D50). */
@Injectable()
export class OrderPages {
  constructor(
    private readonly orders: ReadOrders,
    private readonly topups: TopupsRepository,
    private readonly refundRequests: RefundRequestsRepository,
    private readonly events: EventsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly installLinks: InstallLinksRepository,
  ) {}

  /** @throws NotFound */
  async read(caller: AdminOrPortalPrincipal, id: string): Promise<OrderPage> {
    const found = await this.orders.findById(id);
    if (!found) throw new NotFound();
    caller.assertReaches(found.order);
    const { order } = found;
    const esimIds = found.esims.map((esim) => esim.id);
    const events = await this.events.listOfOrder(
      order,
      { orderId: id, since: firstEventOf(id) },
      PAGE_ROWS.events,
    );
    const topups = await this.topups.listOfEsims(esimIds, PAGE_ROWS.topups);
    const refundRequests = await this.refundRequests.listOfEsims(esimIds, PAGE_ROWS.refundRequests);
    const linkUses = await this.installLinks.usesOf(esimIds);
    const eventIds = events.map((event) => event.id);
    const deliveries = caller.holds('webhooks:read')
      ? await this.deliveries.listOfEvents(order, eventIds, PAGE_ROWS.deliveries)
      : null;
    const rows = { ...found, topups, refundRequests, events, deliveries: deliveries ?? [] };
    return { ...found, refundRequests, linkUses, deliveries, timeline: timelineOf(rows) };
  }
}
