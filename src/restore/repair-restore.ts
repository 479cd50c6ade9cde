import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { EventsRepository } from '../events/index.js';
import { Transactions } from '../infra/database/index.js';
import type { PlacementKind } from '../providers/index.js';
import { type AskedProvider, FindSoldPurchases } from './find-sold-purchases.js';
import { type MovedRows, type RestoreEpoch, RestoreEpochsRepository } from './restore-epochs.repository.js';
import { type UnclaimedPurchase, UnclaimedPurchasesRepository } from './unclaimed-purchases.repository.js';
import { WRITES_KEPT_MS } from './writes-guard.js';

const HOUR_MS = 3_600_000;
/** What was sold a little before the time that was restored to: clocks differ, and commits come after calls. */
const LOOK_BACK_MS = HOUR_MS;
/** As long as a partner may repeat a POST with its key (D17), and as long again for those who come late. */
const LOOK_FIRST_MS = 48 * HOUR_MS;
/** More than can have been given in the lost time: at least so many, and so many for each second of it. */
const LEAST_POSITIONS = 1_000_000_000;
const POSITIONS_PER_SECOND = 100_000;

export interface RepairCommand {
  /** The time that the database was put back to. */
  readonly restoredTo: Date;
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
  /** Looked for before it is placed, until the repetitions of lost calls are over. */
  readonly lookedForFirst: readonly { readonly provider: string; readonly kind: PlacementKind }[];
  /** Writes are taken again. */
  readonly isCompleted: boolean;
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
    super(`the repair of a restore to ${restoredTo.toISOString()} has begun: go on with that time`);
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
  async execute({ restoredTo, stopping, onProgress }: RepairCommand): Promise<RepairReport> {
    const workers = await this.epochs.countWorkers();
    if (workers > 0) throw new WorkersConnected(workers);
    const epoch = await this.epochs.open(restoredTo);
    if (epoch.restoredTo.getTime() !== restoredTo.getTime()) throw new OtherRestoreOpen(epoch.restoredTo);
    onProgress('writes are refused');
    await this.waitUntilOpenFor(epoch, 2 * WRITES_KEPT_MS, stopping);
    const moved = epoch.movedAt === null ? await this.move(epoch) : null;
    onProgress(
      `waiting until the providers show what they sold last (${this.sold.readLagMs / 1_000} s at most)`,
    );
    await this.waitUntilOpenFor(epoch, this.sold.readLagMs, stopping);
    const since = new Date(restoredTo.getTime() - LOOK_BACK_MS);
    const asked = await this.sold.execute(since, stopping, (provider, read) =>
      onProgress(`${provider}: ${read} purchases of ours read`),
    );
    return this.conclude(epoch, moved, asked);
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

  private move({ id, restoredTo, openedAt }: RestoreEpoch): Promise<MovedRows> {
    const lostSeconds = Math.max(0, openedAt.getTime() - restoredTo.getTime()) / 1_000;
    const positions = LEAST_POSITIONS + Math.ceil(lostSeconds) * POSITIONS_PER_SECOND;
    return this.transactions.run(async (tx) => {
      await this.events.skipPositions(tx, positions);
      await this.epochs.raiseVersions(tx, id);
      const moved = await this.epochs.distrustRows(tx);
      await this.epochs.markMoved(tx, id);
      return moved;
    });
  }

  private async conclude(
    epoch: RestoreEpoch,
    moved: MovedRows | null,
    asked: readonly AskedProvider[],
  ): Promise<RepairReport> {
    for (const { found } of asked) if (found !== null) await this.purchases.keepUnknown(epoch.id, found);
    const lookedForFirst = asked.flatMap(({ provider, unlisted }) =>
      unlisted.map((kind) => ({ provider, kind })),
    );
    for (const { provider, kind } of lookedForFirst)
      await this.purchases.lookFirst(provider, kind, LOOK_FIRST_MS);
    const isCompleted = asked.every(({ failure }) => failure === null);
    if (isCompleted) await this.epochs.complete(epoch.id);
    const unclaimed = await this.purchases.list(epoch.id);
    return { epoch, moved, asked, unclaimed, lookedForFirst, isCompleted };
  }
}
