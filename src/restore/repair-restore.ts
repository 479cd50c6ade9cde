import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DAY_MS, HOUR_MS } from '../common/durations.js';
import { CatalogChangesRepository } from '../catalog/index.js';
import { EventsRepository } from '../events/index.js';
import { Transactions } from '../infra/database/index.js';
import { type AskedProvider, FindSoldPurchases } from './find-sold-purchases.js';
import { type MovedRows, type RestoreEpoch, RestoreEpochsRepository } from './restore-epochs.repository.js';
import { type UnclaimedPurchase, UnclaimedPurchasesRepository } from './unclaimed-purchases.repository.js';
import { WRITES_KEPT_MS } from './writes-guard.js';

/** Purchases from shortly before the restored time are included: clocks differ, and commits follow calls. */
const LOOK_BACK_MS = HOUR_MS;
/** How long a partner may repeat a POST with the same Idempotency-Key (D17). */
const LOOK_FIRST_MS = DAY_MS;
/**
 * Time after which every write that passed the guard before the refusal has ended, including its waits for a
 * connection, locks and a statement.
 */
const LAST_WRITE_MS = 15_000;

export interface RepairCommand {
  /** Time to which the database was restored. */
  readonly restoredTo: Date;
  /** Replaces a repair that was started with another time. */
  readonly replaces: boolean;
  /** Accepts writes again at the end, if nothing remains to be done. */
  readonly opens: boolean;
  readonly stopping: AbortSignal;
  /** Called at every long step. */
  readonly onProgress: (text: string) => void;
}

/** Result of a repair. */
export interface RepairReport {
  readonly epoch: RestoreEpoch;
  /** Null when an earlier run has moved them. */
  readonly moved: MovedRows | null;
  readonly asked: readonly AskedProvider[];
  /** Purchases at providers that the database did not know. */
  readonly unclaimed: readonly UnclaimedPurchase[];
  /** Whether every provider has responded. */
  readonly isRepaired: boolean;
  /** Whether writes are accepted again. */
  readonly isOpened: boolean;
}

/** A worker is connected: it would repeat purchases that the restored rows do not contain. */
export class WorkersConnected extends Error {
  constructor(connections: number) {
    super(
      `workers are still connected (connections: ${connections}): stop every worker, and keep them stopped`,
    );
    this.name = 'WorkersConnected';
  }
}

/** Another restore is being repaired. */
export class OtherRestoreOpen extends Error {
  constructor(restoredTo: Date) {
    super(
      `a repair of a restore to ${restoredTo.toISOString()} is in progress: continue with that time, or pass --replace`,
    );
    this.name = 'OtherRestoreOpen';
  }
}

/**
 * Makes a database that was restored to an earlier time safe to sell from again (D54). Every step is repeatable: after
 * a kill or a missing provider response, the same command continues, and writes stay refused until it has finished.
 */
@Injectable()
export class RepairRestore {
  constructor(
    private readonly epochs: RestoreEpochsRepository,
    private readonly purchases: UnclaimedPurchasesRepository,
    private readonly sold: FindSoldPurchases,
    private readonly events: EventsRepository,
    private readonly catalog: CatalogChangesRepository,
    private readonly transactions: Transactions,
  ) {}

  /** @throws WorkersConnected, OtherRestoreOpen; a database error; the abort reason of `stopping` */
  async repair(command: RepairCommand): Promise<RepairReport> {
    const { stopping, onProgress } = command;
    await this.refuseWorkers();
    const epoch = await this.open(command);
    onProgress('writes are blocked');
    await this.waitUntilOpenFor(epoch, 2 * WRITES_KEPT_MS, stopping);
    // A worker may have connected before it could see that claims are off.
    await this.refuseWorkers();
    const moved = epoch.movedAt === null ? await this.move(epoch) : null;
    onProgress('waiting for the last open writes, and until the wholesalers show their latest sales');
    await this.waitUntilOpenFor(epoch, Math.max(LAST_WRITE_MS, this.sold.readLagMs), stopping);
    const asked = await this.sold.find(this.sinceOf(epoch), stopping, (provider, read) =>
      onProgress(`${provider}: ${read} of our purchases read`),
    );
    return this.conclude(epoch, moved, await this.withoutGaps(epoch, asked), command.opens);
  }

  /** The last repair and its unclaimed purchases; null when there was none. Read-only. */
  async status(): Promise<Pick<RepairReport, 'epoch' | 'unclaimed'> | null> {
    const epoch = await this.epochs.findLast();
    return epoch && { epoch, unclaimed: await this.purchases.list(epoch.id) };
  }

  /** Processes cache whether writes are accepted; only after this wait can no process start one. */
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
    // The second repair also looks for what the first one was looking for.
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
      await this.catalog.restart(tx);
      await this.epochs.raiseVersions(tx);
      const moved = await this.epochs.distrustRows(tx);
      await this.epochs.markMoved(tx, id);
      return moved;
    });
  }

  /** Rejects a list that shows none of the known sales of the hour before the restored time. */
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
    // Includes rows accepted since the first pass by calls that had already begun.
    await this.transactions.run((tx) => this.epochs.distrustRows(tx));
    await this.refuseWorkers();
    const isRepaired = asked.every(({ failure }) => failure === null);
    const isOpened = isRepaired && opens;
    if (isOpened) await this.epochs.complete(epoch.id);
    const unclaimed = await this.purchases.list(epoch.id);
    return { epoch, moved, asked, unclaimed, isRepaired, isOpened };
  }
}

const BLIND = 'its list has none of its sales of the hour before: check that it is the same account';
