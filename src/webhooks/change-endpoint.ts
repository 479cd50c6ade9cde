import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { FindEndpoint } from './find-endpoint.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import {
  type EndpointChange,
  type EndpointKey,
  WebhookEndpointsRepository,
} from './webhook-endpoints.repository.js';

/** Changes and deletes endpoints (decisions, Changes): no change resets status, count or attempts. */
@Injectable()
export class ChangeEndpoint {
  constructor(
    private readonly find: FindEndpoint,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** A new URL applies from the next attempt on, event types to later events. @throws NotFound */
  async update(
    tx: Tx,
    by: ChangeAuthor,
    key: EndpointKey,
    wanted: EndpointChange,
  ): Promise<WebhookEndpointEntity> {
    const before = await this.find.getForChange(tx, key);
    const change = differences(before, wanted);
    const fields = Object.keys(change).sort();
    if (fields.length === 0) return before;
    await this.endpoints.update(tx, key.id, change);
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.updated',
      partnerId: key.partnerId,
      subjectId: key.id,
      details: { fields },
    });
    return this.find.getById(key, tx);
  }

  /** Discards what is undelivered; the log stays. @throws NotFound */
  async delete(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<void> {
    await this.find.getForDeletion(tx, key);
    await this.endpoints.markDeleted(tx, key.id);
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.deleted',
      partnerId: key.partnerId,
      subjectId: key.id,
    });
  }
}

function differences(before: WebhookEndpointEntity, wanted: EndpointChange): EndpointChange {
  const { url, description, eventTypes } = wanted;
  return {
    ...(url === undefined || url === before.url ? {} : { url }),
    ...(description === undefined || description === before.description ? {} : { description }),
    ...(eventTypes === undefined || sameTypes(eventTypes, before.eventTypes) ? {} : { eventTypes }),
  };
}

function sameTypes(a: readonly string[] | null, b: readonly string[] | null): boolean {
  return (a?.toSorted().join() ?? null) === (b?.toSorted().join() ?? null);
}
