import { Injectable } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { type EndpointKey, WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** Endpoints of a partner; deleted ones and other partners' are the same 404 (D14). */
@Injectable()
export class FindEndpoint {
  constructor(private readonly endpoints: WebhookEndpointsRepository) {}

  /** @throws NotFound */
  async getById(key: EndpointKey, tx?: Tx): Promise<WebhookEndpointEntity> {
    return found(await this.endpoints.find(key, tx));
  }

  /** The endpoint, locked against other changes of it until the end of `tx`. @throws NotFound */
  async getForChange(tx: Tx, key: EndpointKey): Promise<WebhookEndpointEntity> {
    return found(await this.endpoints.findForChange(tx, key));
  }

  /** The endpoint, locked against everything that would owe it a delivery. @throws NotFound */
  async getForDeletion(tx: Tx, key: EndpointKey): Promise<WebhookEndpointEntity> {
    return found(await this.endpoints.findForDeletion(tx, key));
  }
}

function found(endpoint: WebhookEndpointEntity | null): WebhookEndpointEntity {
  if (!endpoint) throw new NotFound();
  return endpoint;
}
