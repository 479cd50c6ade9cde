import { Injectable } from '@nestjs/common';
import type { PortalPrincipal } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import type { Tx } from '../../infra/database/index.js';
import { ReplayEvents, type TrackedReplay } from '../replay-events.js';
import { type DeliveryWithLog, WebhookDeliveriesRepository } from '../webhook-deliveries.repository.js';
import type { WebhookDeliveryEntity } from '../webhook-delivery.entity.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import { type EndpointKey, WebhookEndpointsRepository } from '../webhook-endpoints.repository.js';
import { WebhookEndpointsService } from '../webhook-endpoints.service.js';

/** What of the webhooks a portal session may see: its partner's, in its modes. Anything else is the one 404 (D14, D50). */
@Injectable()
export class OwnedWebhooks {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly lists: WebhookEndpointsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly replays: ReplayEvents,
  ) {}

  /** @throws NotFound */
  async endpoint(caller: PortalPrincipal, id: string, tx?: Tx): Promise<WebhookEndpointEntity> {
    const endpoint = await this.endpoints.getById({ partnerId: caller.partnerId, id }, tx);
    caller.assertSees(endpoint.mode);
    return endpoint;
  }

  /** The key of an endpoint that the session may change. @throws NotFound */
  async endpointKey(caller: PortalPrincipal, id: string, tx?: Tx): Promise<EndpointKey> {
    await this.endpoint(caller, id, tx);
    return { partnerId: caller.partnerId, id };
  }

  /** The delivery log outlives its endpoint. @throws NotFound */
  async endpointEvenDeleted(caller: PortalPrincipal, id: string): Promise<WebhookEndpointEntity> {
    const endpoint = await this.lists.findEvenDeleted({ partnerId: caller.partnerId, id });
    if (!endpoint) throw new NotFound();
    caller.assertSees(endpoint.mode);
    return endpoint;
  }

  /** @throws NotFound */
  async delivery(caller: PortalPrincipal, id: string, tx: Tx): Promise<WebhookDeliveryEntity> {
    return ownedBy(caller, await this.deliveries.find(id, tx));
  }

  /** @throws NotFound */
  async deliveryWithLog(caller: PortalPrincipal, id: string): Promise<DeliveryWithLog> {
    const found = await this.deliveries.findWithLog(id);
    ownedBy(caller, found?.delivery ?? null);
    return found!;
  }

  /** @throws NotFound */
  async replay(caller: PortalPrincipal, id: string, tx?: Tx): Promise<TrackedReplay> {
    const tracked = await this.replays.get(id, tx);
    if (tracked.replay.partnerId !== caller.partnerId) throw new NotFound();
    await this.endpointEvenDeleted(caller, tracked.replay.endpointId);
    return tracked;
  }
}

function ownedBy(caller: PortalPrincipal, delivery: WebhookDeliveryEntity | null): WebhookDeliveryEntity {
  if (delivery?.partnerId !== caller.partnerId) throw new NotFound();
  caller.assertSees(delivery.mode);
  return delivery;
}
