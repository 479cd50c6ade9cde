import { Injectable } from '@nestjs/common';
import { EventRecorder, type NewEvent } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { AutoTopupsRepository } from './auto-topups.repository.js';
import type { EsimEntity } from './esim.entity.js';
import { type AppliedTopup, type EsimObservation, observe } from './esim-lifecycle.js';
import type { UsageReport } from './usage-report.js';
import { withVersion } from './esim-transition.js';
import { EsimsRepository } from './esims.repository.js';

/** Applies observations to locked eSIMs and records the events they cause, in one transaction (D24). */
@Injectable()
export class EsimObserver {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly autoTopups: AutoTopupsRepository,
    private readonly events: EventRecorder,
  ) {}

  /**
   * Applies usage reports of several eSIMs, whose rows `tx` has locked, all with the same timestamp, and records their
   * events in order.
   */
  async applyUsageReports(
    tx: Tx,
    reports: readonly { readonly esim: EsimEntity; readonly report: UsageReport }[],
  ): Promise<void> {
    const now = await databaseNow(tx);
    const events: NewEvent[] = [];
    for (const { esim, report } of reports) {
      const transition = observe(esim, { kind: 'reported', ...report }, now);
      await this.write(tx, esim, transition.changes, now);
      events.push(...transition.events.map((event) => withVersion(event, esim.version)));
    }
    await this.record(tx, events);
  }

  /**
   * Applies top-ups to eSIMs whose rows `tx` has locked, in one statement and without events. Each top-up sees the eSIM
   * as the earlier ones left it.
   */
  applyTopups(
    tx: Tx,
    topups: readonly { readonly esim: EsimEntity; readonly added: AppliedTopup; readonly at: Date }[],
  ): void {
    const changesOf = new Map<string, Partial<EsimEntity>>();
    for (const { esim, added, at } of topups) {
      const { changes } = observe(esim, { kind: 'topped_up', ...added }, at);
      const written = { ...changes, updatedAt: at };
      Object.assign(esim, written);
      changesOf.set(esim.id, { ...changesOf.get(esim.id), ...written });
    }
    if (changesOf.size > 0) this.esims.updateToppedUp(tx, changesOf);
  }

  /**
   * `esim` must have been read with its row locked in `tx`.
   * @throws AppError `esim_not_ready`
   */
  async apply(tx: Tx, esim: EsimEntity, observation: EsimObservation): Promise<EsimEntity> {
    const now = await databaseNow(tx);
    const { changes, events } = observe(esim, observation, now);
    await this.write(tx, esim, changes, now);
    await this.record(
      tx,
      events.map((event) => withVersion(event, esim.version)),
    );
    return esim;
  }

  /** Records the events, and decides on the automatic top-ups of the thresholds among them. */
  private async record(tx: Tx, events: readonly NewEvent[]): Promise<void> {
    await this.events.record(tx, events);
    const crossed = events.flatMap((event) =>
      event.type === 'esim.usage.threshold'
        ? [{ esimId: event.data.esim_id, percent: event.data.threshold_percent }]
        : [],
    );
    await this.autoTopups.makeDue(tx, crossed);
  }

  private async write(tx: Tx, esim: EsimEntity, changes: Partial<EsimEntity>, now: Date): Promise<void> {
    const names = Object.keys(changes);
    if (names.length === 0) return;
    // A poll alone changes nothing that a partner sees.
    const written = names.every((name) => name === 'readAt') ? changes : { ...changes, updatedAt: now };
    const version = await this.esims.update(tx, esim.id, written);
    Object.assign(esim, written, { version });
  }
}
