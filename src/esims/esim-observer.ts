import { Injectable } from '@nestjs/common';
import { EventRecorder, type NewEvent, type UsageLevels } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { AutoTopupsRepository } from './auto-topups.repository.js';
import type { EsimEntity } from './esim.entity.js';
import { type AppliedTopup, type EsimObservation, observe } from './esim-lifecycle.js';
import type { UsageReport } from './usage-report.js';
import { type EsimTransition, expiringEvent, withLevels, withVersion } from './esim-transition.js';
import { levelOfWarning } from './expiry-warning.js';
import { EsimsRepository } from './esims.repository.js';

/** Columns whose changes partners do not see. */
const UNSEEN: ReadonlySet<string> = new Set<keyof EsimEntity>(['readAt', 'expiryWarningAt']);

interface Observed {
  readonly esim: EsimEntity;
  readonly transition: EsimTransition;
}

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
    const observed = reports.map(({ esim, report }) => ({
      esim,
      transition: observe(esim, { kind: 'reported', ...report }, now),
    }));
    await this.writeAll(tx, observed, now);
  }

  /** Records the `esim.expiring` that is due for eSIMs whose rows `tx` has locked, or that none is due any more. */
  async warn(tx: Tx, esims: readonly EsimEntity[]): Promise<void> {
    const now = await databaseNow(tx);
    // Another worker may have been faster, or a top-up may have extended the validity.
    const due = esims.filter(({ expiryWarningAt }) => expiryWarningAt !== null && expiryWarningAt <= now);
    if (due.length === 0) return;
    const levels = due.map((esim) => ({ esim, level: levelOfWarning(esim, now) }));
    await this.esims.setWarnings(
      tx,
      new Map(levels.map(({ esim, level }) => [esim.id, level?.nextAt ?? null])),
    );
    const events = levels.flatMap(({ esim, level }) =>
      level ? [withVersion(expiringEvent(esim, level, now), esim.version)] : [],
    );
    await this.events.record(tx, events);
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
    await this.writeAll(tx, [{ esim, transition: observe(esim, observation, now) }], now);
    return esim;
  }

  private async writeAll(tx: Tx, observed: readonly Observed[], now: Date): Promise<void> {
    const levelsOf = await this.usageLevels(tx, observed);
    const events: NewEvent[] = [];
    for (const { esim, transition } of observed) {
      const reported = withLevels(esim, transition, levelsOf(esim), now);
      await this.write(tx, esim, transition.changes, now);
      events.push(...reported.map((event) => withVersion(event, esim.version)));
    }
    await this.record(tx, events);
  }

  /** Reads the levels once, and only if the usage of an eSIM with a total grew. */
  private async usageLevels(tx: Tx, observed: readonly Observed[]): Promise<UsageLevels> {
    const used = observed.filter(
      ({ esim, transition: { changes } }) =>
        esim.totalBytes !== null && (changes.usedBytes ?? changes.thresholdsCrossed) !== undefined,
    );
    if (used.length === 0) return () => [];
    return this.events.usageLevels(
      tx,
      used.map(({ esim }) => esim),
    );
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
    const written = names.every((name) => UNSEEN.has(name)) ? changes : { ...changes, updatedAt: now };
    const version = await this.esims.update(tx, esim.id, written);
    Object.assign(esim, written, { version });
  }
}
