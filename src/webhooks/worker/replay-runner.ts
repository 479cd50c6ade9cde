import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { InjectNotifier, WorkerNotifier } from '../../infra/jobs/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { Sweeps } from '../../infra/sweeps.js';
import { DELIVERY_JOBS } from '../delivery-fan-out.js';
import { REPLAY_STEP } from '../replay-events.js';
import { WebhookEndpointsRepository } from '../webhook-endpoints.repository.js';
import type { WebhookReplayEntity } from '../webhook-replay.entity.js';
import { WebhookReplaysRepository } from '../webhook-replays.repository.js';
import { ReplayJobsRepository } from './replay-jobs.repository.js';

const TICK_MS = 500;
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
    sweeps.register({
      name: 'webhooks.replays',
      intervalMs: TICK_MS,
      run: (stopping) => this.advanceAll(stopping),
    });
    sweeps.register({
      name: 'webhooks.replay_items',
      intervalMs: PURGE_MS,
      run: (stopping) => this.purgeItems(stopping),
    });
  }

  private async advanceAll(stopping: AbortSignal): Promise<void> {
    for (const id of await this.jobs.listRunning(REPLAYS_PER_TICK)) {
      if (stopping.aborted) return;
      try {
        await this.takeTurn(id, stopping);
      } catch (error) {
        // One that cannot go on now must not hold up those behind it.
        this.logger.warn({ event: 'webhook.replay_failed', replayId: id, err: error }, 'trying again');
      }
    }
  }

  /** Choosing goes ahead of sending, also where few deliveries of many match. */
  private async takeTurn(id: string, stopping: AbortSignal): Promise<void> {
    let isChoosing = true;
    for (let step = 0; isChoosing && !stopping.aborted && step < STEPS_PER_TURN; step++) {
      isChoosing = await this.transactions.run((tx) => this.advance(tx, id));
    }
  }

  private async purgeItems(stopping: AbortSignal): Promise<void> {
    for (const id of await this.jobs.listEndedWithItems(REPLAYS_PER_TICK)) {
      await purgeInSteps((limit) => this.jobs.removeItems(id, limit), {
        batchRows: REPLAY_STEP,
        stopping,
      });
    }
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
    const wanted = Math.min(allowed, this.perSecond - pending);
    if (wanted <= 0) return;
    const { made, gone } = await this.jobs.makeDeliveries(tx, replay, mode, wanted);
    if (made > 0) tx.afterCommit(() => this.notifier.notify(replay.endpointId));
    if (gone > 0) tx.afterCommit(() => this.warnOfGone(replay, gone));
  }

  private warnOfGone({ id: replayId, endpointId }: WebhookReplayEntity, count: number): void {
    const line = { event: 'webhook.replay_events_gone', replayId, endpointId, count };
    this.logger.warn(line, 'not repeated: past their retention');
  }
}
