import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import { FindEndpoint } from './find-endpoint.js';
import { DELIVERY_JOBS } from './delivery-jobs.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { type EndpointKey, WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** What becomes of the backlog when an endpoint is enabled (D32). */
export interface BacklogChoice {
  readonly held: 'release' | 'discard';
  readonly failed: 'resend' | 'leave';
}

/** The status switch (spec section 2, D32). Switching to the state that is there changes nothing. */
@Injectable()
export class SwitchEndpoint {
  constructor(
    private readonly find: FindEndpoint,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly audit: AuditLog,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound */
  async enable(
    tx: Tx,
    by: ChangeAuthor,
    key: EndpointKey,
    choice: BacklogChoice,
  ): Promise<WebhookEndpointEntity> {
    const before = await this.find.getForChange(tx, key);
    if (before.enabled) return before;
    const settled = await this.settleBacklog(tx, key.id, choice);
    await this.endpoints.enable(tx, key.id);
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.enabled',
      partnerId: key.partnerId,
      subjectId: key.id,
      details: { ...choice, ...settled },
    });
    tx.afterCommit(() => this.notifier.notify(key.id));
    return this.find.getById(key, tx);
  }

  /** Writes one row: what is owed is held because of it (D32). @throws NotFound */
  async disable(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<WebhookEndpointEntity> {
    const before = await this.find.getForChange(tx, key);
    if (!before.enabled) return before;
    await this.endpoints.disable(tx, key.id);
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.disabled',
      partnerId: key.partnerId,
      subjectId: key.id,
      details: { reason: 'manual' },
    });
    return this.find.getById(key, tx);
  }

  private async settleBacklog(tx: Tx, id: string, choice: BacklogChoice): Promise<Record<string, number>> {
    const discarded = choice.held === 'discard' ? await this.endpoints.giveUpBacklog(tx, id) : 0;
    if (choice.held === 'release') await this.deliveries.makeDue(tx, id);
    const resent = choice.failed === 'resend' ? await this.deliveries.resendFailed(tx, id) : 0;
    return { discarded, resent };
  }
}
