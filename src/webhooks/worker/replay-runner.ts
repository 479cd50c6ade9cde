import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import { Allowances } from '../../infra/allowances.js';
import { LOGGER } from '../../infra/logging.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../../infra/jobs/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { runEach } from '../../infra/run-each.js';
import { NOTHING_DUE, Sweeps } from '../../infra/sweeps.js';
import { DELIVERY_JOBS } from '../delivery-fan-out.js';
import { REPLAY_STEP } from '../replay-events.js';
import { WebhookEndpointsRepository } from '../webhook-endpoints.repository.js';
import type { WebhookReplayEntity } from '../webhook-replay.entity.js';
import { WebhookReplaysRepository } from '../webhook-replays.repository.js';
import { ReplayJobsRepository } from './replay-jobs.repository.js';

const TICK_MS = 500;
/** A replay is rare: while none runs, its beginning may wait so long. */
const IDLE_TICK_MS = 1_000;
const REPLAYS_PER_TICK = 100;
const STEPS_PER_TURN = 5;
const PURGE_MS = 5_000;
/** What was not made while nobody could is not made up for at once. */
const LONGEST_STEP_MS = 1_000;

/**
 * Makes the deliveries of running replays, so many a second, and never has more than a second's worth waiting: what
 * happens now does not queue behind what is repeated (D34). Every step is one transaction and may be cut anywhere.
 */
@Injectable()
export class ReplayRunner {
  private readonly perSecond: number;
  /** All replays of a partner and mode share the rate of one, in this process. */
  private readonly ofOwner: Allowances;
  /** The last id of the page before: a page of replays whose purge fails must not hide those behind it. */
  private itemsPurgedTo = '';

  constructor(
    private readonly replays: WebhookReplaysRepository,
    private readonly jobs: ReplayJobsRepository,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly transactions: Transactions,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    this.perSecond = config.webhooks.replayPerSecond;
    this.ofOwner = new Allowances({ burst: this.perSecond, perSecond: this.perSecond });
    sweeps.register({
      name: 'webhooks.replays',
      intervalMs: TICK_MS,
      idleIntervalMs: IDLE_TICK_MS,
      run: (stopping) => this.advanceAll(stopping),
    });
    sweeps.register({
      name: 'webhooks.replay_items',
      intervalMs: PURGE_MS,
      run: (stopping) => this.purgeItems(stopping),
    });
  }

  private async advanceAll(stopping: AbortSignal): Promise<unknown> {
    const ids = await this.jobs.listRunning(REPLAYS_PER_TICK);
    if (ids.length === 0) return NOTHING_DUE;
    const othersWait = ids.length === REPLAYS_PER_TICK;
    for (const id of ids) {
      if (stopping.aborted) return;
      const isDone = await this.tryTurn(id, () => this.takeTurn(id, stopping));
      // Its turn may have come to nothing: a hundred that fail, or wait for their receivers, would be first for ever.
      if (!isDone || othersWait) await this.tryTurn(id, () => this.jobs.putBehind(id, LONGEST_STEP_MS));
    }
  }

  /** False when it failed: one that cannot go on now must not hold up those behind it. */
  private async tryTurn(replayId: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.logger.warn({ event: 'webhook.replay_failed', replayId, err: error }, 'trying again');
      return false;
    }
  }

  /** Choosing goes ahead of sending, also where few deliveries of many match. */
  private async takeTurn(id: string, stopping: AbortSignal): Promise<void> {
    let isChoosing = true;
    for (let step = 0; isChoosing && !stopping.aborted && step < STEPS_PER_TURN; step++) {
      isChoosing = await this.transactions.run((tx) => this.advance(tx, id));
    }
  }

  /** @throws AggregateError after all of the page was tried, when some failed */
  private async purgeItems(stopping: AbortSignal): Promise<void> {
    const ids = await this.jobs.listEndedWithItems(this.itemsPurgedTo, REPLAYS_PER_TICK);
    this.itemsPurgedTo = ids.length === REPLAYS_PER_TICK ? ids.at(-1)! : '';
    const purge = (id: string): Promise<number> =>
      purgeInSteps((limit) => this.jobs.removeItems(id, limit), { batchRows: REPLAY_STEP, stopping });
    await runEach(ids, purge, {
      stopping,
      failed: (replayId, error) =>
        this.logger.warn({ event: 'webhook.replay_purge_failed', replayId, err: error }, 'trying again'),
    });
  }

  /** True while there may be more to choose from. */
  private async advance(tx: Tx, id: string): Promise<boolean> {
    const replay = await this.jobs.lockRunning(tx, id);
    if (!replay) return false;
    const { endpointId, partnerId } = replay;
    const endpoint = await this.endpoints.find({ partnerId, id: endpointId }, tx);
    if (!endpoint) {
      await this.replays.end(tx, id, 'canceled');
      return false;
    }
    const { pending, hasItems } = await this.jobs.readWork(tx, id);
    if (replay.choosing) await this.replays.choose(tx, id, replay, REPLAY_STEP);
    if (hasItems) await this.makeSome(tx, replay, endpoint.mode, pending);
    else if (pending === 0 && !replay.choosing) await this.replays.end(tx, id, 'completed');
    return replay.choosing;
  }

  private async makeSome(tx: Tx, replay: WebhookReplayEntity, mode: Mode, pending: number): Promise<void> {
    const sinceMs = replay.advancedAt
      ? (await databaseNow(tx)).getTime() - replay.advancedAt.getTime()
      : LONGEST_STEP_MS;
    const allowed = Math.floor((this.perSecond * Math.min(sinceMs, LONGEST_STEP_MS)) / 1_000);
    const owner = partnerGroup({ partnerId: replay.partnerId, mode });
    const wanted = Math.min(allowed, this.perSecond - pending, Math.floor(this.ofOwner.left(owner)));
    if (wanted <= 0) return;
    this.ofOwner.spend(owner, wanted);
    const { made, gone } = await this.jobs.makeDeliveries(tx, replay, mode, wanted);
    if (made > 0) tx.afterCommit(() => this.notifier.notify(replay.endpointId));
    if (gone > 0) tx.afterCommit(() => this.warnOfGone(replay, gone));
  }

  private warnOfGone({ id: replayId, endpointId }: WebhookReplayEntity, count: number): void {
    const line = { event: 'webhook.replay_events_gone', replayId, endpointId, count };
    this.logger.warn(line, 'not repeated: past their retention');
  }
}
