import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type EventFanOut, EventRecorder, type RecordedEvent } from '../events/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, notifierModule, WorkerNotifier } from '../infra/jobs/index.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';

/** BullMQ queue of notifications for endpoints' deliveries; a group is an endpoint's id (D34). */
export const DELIVERY_JOBS = 'delivery-jobs';

/** Created once: a second dynamic module would open a second queue. */
export const DeliveryNotifierModule = notifierModule(DELIVERY_JOBS);

/** Owes every recorded event to the endpoints of its partner and mode, in the transaction of the event (D28, D32). */
@Injectable()
export class DeliveryFanOut implements EventFanOut, OnModuleInit {
  constructor(
    private readonly recorder: EventRecorder,
    private readonly deliveries: WebhookDeliveriesRepository,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  onModuleInit(): void {
    this.recorder.register(this);
  }

  async fanOut(tx: Tx, events: readonly RecordedEvent[]): Promise<void> {
    const endpointIds = await this.deliveries.insertForEvents(tx, events);
    if (endpointIds.length === 0) return;
    tx.afterCommit(() => endpointIds.forEach((id) => this.notifier.notify(id)));
  }
}
