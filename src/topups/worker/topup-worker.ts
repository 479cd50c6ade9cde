import { Processor } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG } from '../../config/index.js';
import { InjectNotifier, type JobEnd, JobWorker, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import {
  type Concerns,
  parseTraceparent,
  type Span,
  type SpanRequest,
  Tracer,
} from '../../infra/tracing/index.js';
import {
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type ProviderWorkerConfig,
  providerWorkerOptions,
  retryDelayMs,
} from '../../providers/index.js';
import { type ClaimedTopup, TOPUP_JOBS, TopupJobsRepository } from '../topup-jobs.repository.js';
import { FulfilTopup } from './fulfil-topup.js';

/** Top-ups under way at once in one worker process, over all partners. */
const CONCURRENCY = 64;
/** Of them, kept for partners that have none under way: however many are busy, the next one finds a slot (D41). */
const KEPT_FOR_OTHERS = 1 / 4;

/** Works off the top-ups that are due, partner by partner; each partner has its own concurrency (D27, Fairness). */
@Processor(TOPUP_JOBS, { concurrency: 20 })
export class TopupWorker extends JobWorker<ClaimedTopup> {
  constructor(
    private readonly jobs: TopupJobsRepository,
    private readonly fulfil: FulfilTopup,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: ProviderWorkerConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly tracer: Tracer,
  ) {
    super(jobs, {
      ...providerWorkerOptions(config),
      name: 'topups',
      concurrency: CONCURRENCY,
      keptForOthers: KEPT_FOR_OTHERS,
      concernsOf,
      notifier,
      logger,
    });
  }

  protected override async run(claimed: ClaimedTopup): Promise<JobEnd> {
    await this.tracer.inSpan(spanOf(claimed), (span) => this.work(claimed, span));
    return { refetch: true };
  }

  private async work(claimed: ClaimedTopup, span: Span): Promise<void> {
    const { topup } = claimed;
    try {
      await this.fulfil.execute(claimed);
    } catch (error) {
      // Whatever went wrong, only the provider's answer ends a top-up (D22): it is asked for again.
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      this.logger[known ? 'warn' : 'error'](
        { event: 'topup.attempt_failed', topupId: topup.id, attempt: topup.attempts, err: error },
        'no answer from the upstream; the top-up is tried again',
      );
      span.fail((error as Error).name);
      await this.jobs.postpone(claimed, retryDelayMs(topup.attempts, error), (error as Error).name);
    }
  }
}

function concernsOf({ topup }: ClaimedTopup): Concerns {
  return { requestId: topup.acceptedRequestId, topupId: topup.id };
}

/** Each of a top-up's jobs is a child of the call that accepted it, however many one claim took (D53). */
function spanOf(claimed: ClaimedTopup): SpanRequest {
  const { topup, claimedIn } = claimed;
  return {
    name: 'process topup',
    kind: 'consumer',
    parent: parseTraceparent(topup.traceparent),
    links: [claimedIn],
    concerns: concernsOf(claimed),
    attributes: { 'esim.mode': topup.mode, 'esim.provider': topup.provider, 'esim.attempt': topup.attempts },
  };
}
