import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type EventFanOut, EventRecorder } from '../events/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, notifierModule, WorkerNotifier } from '../infra/jobs/index.js';

/** BullMQ queue of notifications for endpoints' deliveries; a group is an endpoint's id (D34). */
export const DELIVERY_JOBS = 'delivery-jobs';

/** Created once: a second dynamic module would open a second queue. */
export const DeliveryNotifierModule = notifierModule(DELIVERY_JOBS);

/** Tells the workers of endpoints to which recorded events are owed, once they are committed (D28, D32). */
@Injectable()
export class DeliveryFanOut implements EventFanOut, OnModuleInit {
  constructor(
    private readonly recorder: EventRecorder,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  onModuleInit(): void {
    this.recorder.register(this);
  }

  announce(tx: Tx, endpointIds: readonly string[]): void {
    tx.afterCommit(() => endpointIds.forEach((id) => this.notifier.notify(id)));
  }
}
