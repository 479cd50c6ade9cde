import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type EventFanOut, EventRecorder, type RecordedEvent } from '../events/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectWakeUps, WakeUps } from '../infra/queue/index.js';
import { WEBHOOK_WAKE_UPS_QUEUE } from './wake-ups.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';

/** Owes every recorded event to the endpoints of its partner and mode, in the transaction of the event (D28, D32). */
@Injectable()
export class DeliveryFanOut implements EventFanOut, OnModuleInit {
  constructor(
    private readonly recorder: EventRecorder,
    private readonly deliveries: WebhookDeliveriesRepository,
    @InjectWakeUps(WEBHOOK_WAKE_UPS_QUEUE) private readonly wakeUps: WakeUps,
  ) {}

  onModuleInit(): void {
    this.recorder.register(this);
  }

  async fanOut(tx: Tx, events: readonly RecordedEvent[]): Promise<void> {
    const endpointIds = await this.deliveries.insertForEvents(tx, events);
    if (endpointIds.length === 0) return;
    tx.afterCommit(() => endpointIds.forEach((id) => this.wakeUps.request(id)));
  }
}
