import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { EventsRepository } from '../events/index.js';
import { Transactions } from '../infra/database/index.js';
import { type AskedProvider, FindSoldPurchases } from './find-sold-purchases.js';
import { type MovedRows, type RestoreEpoch, RestoreEpochsRepository } from './restore-epochs.repository.js';
import { type UnclaimedPurchase, UnclaimedPurchasesRepository } from './unclaimed-purchases.repository.js';
import { WRITES_KEPT_MS } from './writes-guard.js';

const HOUR_MS = 3_600_000;
/** What was sold a little before the time that was restored to: clocks differ, and commits come after calls. */
const LOOK_BACK_MS = HOUR_MS;
/** As long as a partner may repeat a POST with its key (D17). */
const LOOK_FIRST_MS = 24 * HOUR_MS;
/** Who had passed the guard when writes were first refused has ended by then: it waits for a connection, locks, a statement. */
const LAST_WRITE_MS = 15_000;

export interface RepairCommand {
  /** The time that the database was put back to. */
  readonly restoredTo: Date;
  /** Takes the place of a repair that was begun with another time. */
  readonly replaces: boolean;
  /** Writes are taken again at the end, when nothing is left to do. */
  readonly opens: boolean;
  readonly stopping: AbortSignal;
  /** Told at every step that takes time. */
  readonly onProgress: (text: string) => void;
}

/** What became of a repair. */
export interface RepairReport {
  readonly epoch: RestoreEpoch;
  /** Null when an earlier run has moved them. */
  readonly moved: MovedRows | null;
  readonly asked: readonly AskedProvider[];
  /** What providers sold and the database did not know. */
  readonly unclaimed: readonly UnclaimedPurchase[];
  /** Every provider has answered. */
  readonly isRepaired: boolean;
  /** Writes are taken again. */
  readonly isOpened: boolean;
}

/** A worker is connected: it would buy again what the restored rows do not know. */
export class WorkersConnected extends Error {
  constructor(connections: number) {
    super(
      `workers are connected (${connections} connections): stop every worker first, and keep them stopped`,
    );
    this.name = 'WorkersConnected';
  }
}

/** Another restore is being repaired. */
export class OtherRestoreOpen extends Error {
  constructor(restoredTo: Date) {
    super(
      `the repair of a restore to ${restoredTo.toISOString()} has begun: go on with that time, or say --replace`,
    );
    this.name = 'OtherRestoreOpen';
  }
}

/**
 * Makes a database that was put back to an earlier time safe to sell from again (D54). Each step may be repeated: killed
 * anywhere, or when a provider did not answer, the same command goes on, and writes stay refused until it has ended.
 */
@Injectable()
export class RepairRestore {
  constructor(
    private readonly epochs: RestoreEpochsRepository,
    private readonly purchases: UnclaimedPurchasesRepository,
    private readonly sold: FindSoldPurchases,
    private readonly events: EventsRepository,
    private readonly transactions: Transactions,
  ) {}

  /** @throws WorkersConnected, OtherRestoreOpen; Error of the database; whatever `stopping` was aborted with */
  async execute(command: RepairCommand): Promise<RepairReport> {
    const { stopping, onProgress } = command;
    await this.refuseWorkers();
    const epoch = await this.open(command);
    onProgress('writes are refused');
    await this.waitUntilOpenFor(epoch, 2 * WRITES_KEPT_MS, stopping);
    // One may have connected before it could see that nothing is to be claimed.
    await this.refuseWorkers();
    const moved = epoch.movedAt === null ? await this.move(epoch) : null;
    onProgress(
      'waiting for the last writes that had begun, and until the providers show what they sold last',
    );
    await this.waitUntilOpenFor(epoch, Math.max(LAST_WRITE_MS, this.sold.readLagMs), stopping);
    const asked = await this.sold.execute(this.sinceOf(epoch), stopping, (provider, read) =>
      onProgress(`${provider}: ${read} purchases of ours read`),
    );
    return this.conclude(epoch, moved, await this.withoutGaps(epoch, asked), command.opens);
  }

  /** The last repair and what is still unclaimed of it; null when there was none. Only reads. */
  async status(): Promise<Pick<RepairReport, 'epoch' | 'unclaimed'> | null> {
    const epoch = await this.epochs.findLast();
    return epoch && { epoch, unclaimed: await this.purchases.list(epoch.id) };
  }

  /** What processes know of writes is older than a refusal: only after that does nobody begin one. */
  private async waitUntilOpenFor({ id }: RestoreEpoch, ms: number, stopping: AbortSignal): Promise<void> {
    const leftMs = ms - (await this.epochs.openForMs(id));
    if (leftMs > 0) await delay(leftMs, undefined, { signal: stopping });
  }

  private async refuseWorkers(): Promise<void> {
    const workers = await this.epochs.countWorkers();
    if (workers > 0) throw new WorkersConnected(workers);
  }

  private async open({ restoredTo, replaces }: RepairCommand): Promise<RestoreEpoch> {
    const epoch = await this.epochs.open(restoredTo);
    if (epoch.restoredTo.getTime() === restoredTo.getTime()) return epoch;
    if (!replaces) throw new OtherRestoreOpen(epoch.restoredTo);
    // What the first one was looking for is looked for by the second one as well.
    const earlier = epoch.restoredTo < restoredTo ? epoch.restoredTo : restoredTo;
    await this.transactions.run((tx) => this.epochs.replace(tx, epoch.id, earlier));
    return (await this.epochs.findOpen())!;
  }

  private sinceOf({ restoredTo }: RestoreEpoch): Date {
    return new Date(restoredTo.getTime() - LOOK_BACK_MS);
  }

  private move({ id, restoredTo }: RestoreEpoch): Promise<MovedRows> {
    return this.transactions.run(async (tx) => {
      await this.events.restartPositions(tx, restoredTo);
      await this.epochs.raiseVersions(tx);
      const moved = await this.epochs.distrustRows(tx);
      await this.epochs.markMoved(tx, id);
      return moved;
    });
  }

  /** A list that shows nothing of what was certainly sold in the hour before says nothing: it is not believed. */
  private async withoutGaps(
    epoch: RestoreEpoch,
    asked: readonly AskedProvider[],
  ): Promise<readonly AskedProvider[]> {
    const checked: AskedProvider[] = [];
    for (const one of asked) {
      const issued = await this.purchases.sampleIssued(one.provider, this.sinceOf(epoch), epoch.restoredTo);
      const shown = new Set(one.found?.map(({ reference }) => reference));
      const isBlind =
        one.found !== null && issued.length > 0 && !issued.some((reference) => shown.has(reference));
      checked.push(isBlind ? { ...one, found: null, failure: BLIND } : one);
    }
    return checked;
  }

  private async conclude(
    epoch: RestoreEpoch,
    moved: MovedRows | null,
    asked: readonly AskedProvider[],
    opens: boolean,
  ): Promise<RepairReport> {
    for (const { found } of asked) if (found !== null) await this.purchases.keepUnknown(epoch.id, found);
    for (const { provider, unlisted } of asked)
      for (const kind of unlisted)
        await this.purchases.lookFirst(provider, kind, this.sinceOf(epoch), LOOK_FIRST_MS);
    // What was accepted since the first look by calls that had begun before.
    await this.transactions.run((tx) => this.epochs.distrustRows(tx));
    await this.refuseWorkers();
    const isRepaired = asked.every(({ failure }) => failure === null);
    const isOpened = isRepaired && opens;
    if (isOpened) await this.epochs.complete(epoch.id);
    const unclaimed = await this.purchases.list(epoch.id);
    return { epoch, moved, asked, unclaimed, isRepaired, isOpened };
  }
}

const BLIND = 'its list shows nothing of what it sold in the hour before: is it the same account?';
