import { Injectable } from '@nestjs/common';
import type { AdminOrPortalPrincipal } from '../auth/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { ReplayEvents, type TrackedReplay } from './replay-events.js';
import { type DeliveryWithLog, WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import type { WebhookDeliveryEntity } from './webhook-delivery.entity.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { type EndpointKey, WebhookEndpointsRepository } from './webhook-endpoints.repository.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';

/**
 * Finds the webhooks that a caller may see: an admin token sees any partner's, a portal session its partner's in its
 * modes. Everything else is the same 404 (D14, D50).
 */
@Injectable()
export class OwnedWebhooks {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly lists: WebhookEndpointsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly replays: ReplayEvents,
  ) {}

  /** @throws NotFound */
  async endpoint(caller: AdminOrPortalPrincipal, key: EndpointKey, tx?: Tx): Promise<WebhookEndpointEntity> {
    const endpoint = await this.endpoints.getById(key, tx);
    caller.assertSees(endpoint.mode);
    return endpoint;
  }

  /** Finds deleted endpoints too, because the delivery log outlives them. @throws NotFound */
  async endpointEvenDeleted(
    caller: AdminOrPortalPrincipal,
    key: EndpointKey,
  ): Promise<WebhookEndpointEntity> {
    const endpoint = await this.lists.findEvenDeleted(key);
    if (!endpoint) throw new NotFound();
    caller.assertSees(endpoint.mode);
    return endpoint;
  }

  /** @throws NotFound */
  async delivery(caller: AdminOrPortalPrincipal, id: string, tx?: Tx): Promise<WebhookDeliveryEntity> {
    return reached(caller, await this.deliveries.find(id, tx));
  }

  /** @throws NotFound */
  async deliveryWithLog(caller: AdminOrPortalPrincipal, id: string): Promise<DeliveryWithLog> {
    const found = await this.deliveries.findWithLog(id);
    reached(caller, found?.delivery ?? null);
    return found!;
  }

  /** @throws NotFound */
  async replay(caller: AdminOrPortalPrincipal, id: string, tx?: Tx): Promise<TrackedReplay> {
    const tracked = await this.replays.get(id, tx);
    reached(caller, tracked.replay);
    return tracked;
  }
}

function reached<T extends Pick<WebhookDeliveryEntity, 'partnerId' | 'mode'>>(
  caller: AdminOrPortalPrincipal,
  row: T | null,
): T {
  if (!row) throw new NotFound();
  caller.assertReaches(row);
  return row;
}
