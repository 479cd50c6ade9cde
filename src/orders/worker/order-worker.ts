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
import { type ClaimedOrder, ORDER_JOBS, OrderJobsRepository } from '../order-jobs.repository.js';
import { FulfilOrder } from './fulfil-order.js';
import { SettleCancellation } from './settle-cancellation.js';

/** Orders under way at once in one worker process, over all partners. */
const CONCURRENCY = 128;
/** Of them, kept for partners that have none under way: however many are busy, the next one finds a slot (D41). */
const KEPT_FOR_OTHERS = 1 / 4;

/** Works off the orders that are due, partner by partner; each partner has its own concurrency (D27, Fairness). */
@Processor(ORDER_JOBS, { concurrency: 20 })
export class OrderWorker extends JobWorker<ClaimedOrder> {
  constructor(
    private readonly jobs: OrderJobsRepository,
    private readonly fulfil: FulfilOrder,
    private readonly cancellation: SettleCancellation,
    @InjectNotifier(ORDER_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: ProviderWorkerConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly tracer: Tracer,
  ) {
    super(jobs, {
      ...providerWorkerOptions(config),
      name: 'orders',
      concurrency: CONCURRENCY,
      keptForOthers: KEPT_FOR_OTHERS,
      concernsOf,
      notifier,
      logger,
    });
  }

  protected override async run(claimed: ClaimedOrder): Promise<JobEnd> {
    await this.tracer.inSpan(spanOf(claimed), (span) => this.work(claimed, span));
    return { refetch: true };
  }

  private async work(claimed: ClaimedOrder, span: Span): Promise<void> {
    const { order } = claimed;
    try {
      if (order.status === 'canceling') await this.cancellation.execute(claimed);
      else await this.fulfil.execute(claimed);
    } catch (error) {
      // Whatever went wrong, only the provider's answer ends an order (D22): it is asked for again.
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      this.logger[known ? 'warn' : 'error'](
        { event: 'order.attempt_failed', orderId: order.id, attempt: order.upstreamAttempts, err: error },
        'no answer from the upstream; the order is tried again',
      );
      span.fail((error as Error).name);
      await this.jobs.postpone(claimed, retryDelayMs(order.upstreamAttempts, error), (error as Error).name);
    }
  }
}

function concernsOf({ order }: ClaimedOrder): Concerns {
  return { requestId: order.acceptedRequestId, orderId: order.id };
}

/** Each of an order's jobs is a child of the call that accepted it, however many one claim took (D53). */
function spanOf(claimed: ClaimedOrder): SpanRequest {
  const { order, claimedIn } = claimed;
  return {
    name: order.status === 'canceling' ? 'cancel order' : 'process order',
    kind: 'consumer',
    parent: parseTraceparent(order.traceparent),
    links: [claimedIn],
    concerns: concernsOf(claimed),
    attributes: {
      'esim.mode': order.mode,
      'esim.provider': order.provider,
      'esim.quantity': order.quantity,
      'esim.attempt': order.upstreamAttempts,
    },
  };
}
