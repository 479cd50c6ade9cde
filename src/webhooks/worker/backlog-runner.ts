import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Transactions } from '../../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { NOTHING_DUE, Sweeps } from '../../infra/sweeps.js';
import { BacklogRequestsRepository } from '../backlog-requests.repository.js';
import { DELIVERY_JOBS } from '../delivery-fan-out.js';
import { SettleBacklog } from '../settle-backlog.js';

const TICK_MS = 250;
/** A backlog is rare: while there is none, its beginning may wait so long. */
const IDLE_TICK_MS = 1_000;
const REQUESTS_PER_TICK = 20;
/** A large backlog takes its turn with the others. */
const STEPS_PER_TURN = 10;

/** Goes on with the backlogs of endpoints that were enabled (D32), a small transaction at a time. */
@Injectable()
export class BacklogRunner {
  constructor(
    private readonly requests: BacklogRequestsRepository,
    private readonly backlog: SettleBacklog,
    private readonly transactions: Transactions,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'webhooks.backlogs',
      intervalMs: TICK_MS,
      idleIntervalMs: IDLE_TICK_MS,
      run: (stopping) => this.advanceAll(stopping),
    });
  }

  private async advanceAll(stopping: AbortSignal): Promise<unknown> {
    const endpointIds = await this.requests.list(REQUESTS_PER_TICK);
    if (endpointIds.length === 0) return NOTHING_DUE;
    for (const endpointId of endpointIds) {
      if (stopping.aborted) return;
      try {
        await this.requests.markTurn(endpointId);
        await this.takeTurn(endpointId, stopping);
      } catch (error) {
        // One that cannot go on now must not hold up those behind it.
        this.logger.warn({ event: 'webhook.backlog_failed', endpointId, err: error }, 'trying again');
      }
    }
  }

  private async takeTurn(endpointId: string, stopping: AbortSignal): Promise<void> {
    let isMore = true;
    for (let step = 0; isMore && !stopping.aborted && step < STEPS_PER_TURN; step++) {
      isMore = await this.transactions.run((tx) => this.backlog.advance(tx, endpointId));
      this.notifier.notify(endpointId);
    }
  }
}
