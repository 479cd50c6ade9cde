import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { Clock } from '../common/clock.js';
import { AppError, NotFound } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import { TEST_EVENT_TYPE } from './delivery.js';
import { DELIVERY_JOBS } from './delivery-fan-out.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import type { WebhookDeliveryEntity } from './webhook-delivery.entity.js';
import { endpointStatus } from './webhook-endpoint.entity.js';
import type { EndpointKey } from './webhook-endpoints.repository.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';

const CURES = {
  blocked: 'Retry when the block ends, at `blocked_until`.',
  disabled: 'Enable the endpoint first.',
} as const;

/** Deliveries that a person requests: tests and resends, counted separately (D33; decisions, `webhook.test`). */
@Injectable()
export class SendOnRequest {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly audit: AuditLog,
    private readonly clock: Clock,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** One attempt, no retry, not in the feed. @throws NotFound; AppError `conflict` while blocked or disabled */
  async test(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<WebhookDeliveryEntity> {
    const endpoint = await this.endpoints.getForChange(tx, key);
    const status = endpointStatus(endpoint);
    if (status !== 'enabled')
      throw new AppError('conflict', {
        detail: `The endpoint is ${status}, so we cannot send to it. ${CURES[status]}`,
      });
    const id = await newDeliveryId(tx);
    await this.deliveries.insertTest(tx, { id, endpointId: key.id, body: this.testBody(key.id) });
    const { partnerId, id: subjectId } = key;
    const details = { delivery_id: id };
    await this.audit.record(tx, { ...by, action: 'webhook_endpoint.tested', partnerId, subjectId, details });
    return this.send(tx, id, key.id);
  }

  /** A new delivery with the same event id and bytes. @throws NotFound; AppError `conflict` */
  async resend(tx: Tx, by: ChangeAuthor, deliveryId: string): Promise<WebhookDeliveryEntity> {
    const source = await this.deliveries.find(deliveryId, tx);
    if (!source) throw new NotFound();
    const id = await newDeliveryId(tx);
    const partnerId = await this.deliveries.insertResend(tx, id, source);
    if (partnerId === null) {
      throw new AppError('conflict', {
        detail:
          'This delivery cannot be resent: it is a test, its endpoint is deleted, or its event is past the retention period. Send a new test event, or resend another delivery.',
      });
    }
    const details = { delivery_id: id, endpoint_id: source.endpointId };
    const entry = { action: 'webhook_delivery.resent', partnerId, subjectId: deliveryId, details };
    await this.audit.record(tx, { ...by, ...entry });
    return this.send(tx, id, source.endpointId);
  }

  private async send(tx: Tx, id: string, endpointId: string): Promise<WebhookDeliveryEntity> {
    tx.afterCommit(() => this.notifier.notify(endpointId));
    const delivery = await this.deliveries.find(id, tx);
    if (!delivery) throw new NotFound();
    return delivery;
  }

  /** An event envelope with an id that no event has (spec section 2). */
  private testBody(endpointId: string): string {
    return JSON.stringify({
      id: newId('evt'),
      type: TEST_EVENT_TYPE,
      created_at: this.clock.now().toISOString(),
      data: { endpoint_id: endpointId },
    });
  }
}

/** Uses the database's clock, because lookups of an ended delivery search around the time in its id. */
async function newDeliveryId(tx: Tx): Promise<string> {
  return newId('dlv', (await databaseNow(tx)).getTime());
}
