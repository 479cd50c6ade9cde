import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../../src/common/ids.js';
import { EventRecorder, type NewEvent } from '../../src/events/index.js';
import { Transactions } from '../../src/infra/database/index.js';
import type { TestService } from '../harness/index.js';

/** One in ten is of the type that the troubled endpoints want. */
const EXPIRED_EVERY = 10;

/** Records events as any feature does, batch by batch, and again when the database was away. */
export class EventSource {
  /** ICCIDs, one per event, of the batches whose commit was answered. */
  readonly accepted = new Set<string>();
  private made = 0;

  constructor(private readonly service: TestService) {}

  /** Repeats until a batch is committed. A batch whose commit was not answered may be there as well. */
  async recordBatch(partnerId: string, size: number): Promise<void> {
    for (;;) {
      const batch = Array.from({ length: size }, (_, index) => this.newEvent(partnerId, index));
      try {
        await this.record(batch);
        batch.forEach((event) => this.accepted.add(iccidOf(event)));
        return;
      } catch {
        await sleep(200);
      }
    }
  }

  private async record(batch: readonly NewEvent[]): Promise<void> {
    const app = this.service.process.admin!.nest;
    const recorder = app.get(EventRecorder, { strict: false });
    await app.get(Transactions, { strict: false }).run((tx) => recorder.record(tx, batch));
  }

  private newEvent(partnerId: string, index: number): NewEvent {
    const iccid = `89${String(this.made++).padStart(17, '0')}`;
    const data = { esim_id: newId('esim'), order_id: newId('ord'), iccid };
    const common = { partnerId, mode: 'sandbox' as const, happenedAt: new Date() };
    return index % EXPIRED_EVERY === 0
      ? { ...common, type: 'esim.expired', data: { ...data, reason: 'validity_ended', version: 3 } }
      : { ...common, type: 'esim.activated', data };
  }
}

function iccidOf(event: NewEvent): string {
  return (event.data as { iccid: string }).iccid;
}
