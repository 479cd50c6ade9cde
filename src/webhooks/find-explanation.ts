import { Injectable } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import { Explain, type Explanation } from './explain.js';
import { ShowEndpoints } from './show-endpoints.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import type { WebhookDeliveryEntity } from './webhook-delivery.entity.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

const ANY = {
  ...{ status: undefined, eventType: undefined, eventId: undefined, statusCode: undefined },
  ...{ createdAfter: undefined, createdBefore: undefined },
} as const;

/** Loads the facts for an explanation. */
@Injectable()
export class FindExplanation {
  constructor(
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly show: ShowEndpoints,
    private readonly explain: Explain,
  ) {}

  /** @throws NotFound when the endpoint is past its retention */
  async ofDelivery(delivery: WebhookDeliveryEntity): Promise<Explanation> {
    const { partnerId, endpointId: id } = delivery;
    const endpoint = await this.endpoints.findEvenDeleted({ partnerId, id });
    if (!endpoint) throw new NotFound();
    return this.explain.delivery(delivery, endpoint);
  }

  async ofEndpoint(endpoint: WebhookEndpointEntity): Promise<Explanation> {
    const page = await this.deliveries.list(
      endpoint,
      { ...ANY, outcome: 'failed' },
      { limit: 1, cursor: undefined },
    );
    return this.explain.endpoint(await this.show.of(endpoint), page.items[0] ?? null);
  }
}
