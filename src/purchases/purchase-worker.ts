import type { Logger } from 'pino';
import { type JobEnd, JobWorker, type WorkerNotifier } from '../infra/jobs/index.js';
import { type Concerns, parseTraceparent, type SpanRequest, type Tracer } from '../infra/tracing/index.js';
import {
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type ProviderWorkerConfig,
  providerWorkerOptions,
  retryDelayMs,
} from '../providers/index.js';
import type { Purchase, PurchaseKind } from './purchase.js';
import type { ClaimedPurchase, PurchaseJobsRepository } from './purchase-jobs.repository.js';

/**
 * Share of the slots reserved for partners without a purchase in progress: the next partner always finds a slot (D41).
 */
const KEPT_FOR_OTHERS = 1 / 4;

interface PurchaseWorkerOptions {
  /** Maximum concurrent purchases in one worker process, across all partners. */
  readonly concurrency: number;
  /** See `JobRunnerOptions`. */
  readonly readyPerGroup?: number;
  readonly notifier: WorkerNotifier;
  readonly config: ProviderWorkerConfig;
  readonly logger: Logger;
  readonly tracer: Tracer;
}

/** Processes due purchases partner by partner; each partner has its own concurrency (D27, Fairness). */
export abstract class PurchaseWorker<P extends Purchase> extends JobWorker<ClaimedPurchase<P>> {
  private readonly kind: PurchaseKind;

  protected constructor(
    private readonly jobs: PurchaseJobsRepository<P>,
    private readonly parts: PurchaseWorkerOptions,
  ) {
    const { concurrency, readyPerGroup = 0, notifier, config, logger } = parts;
    super(jobs, {
      ...providerWorkerOptions(config),
      name: jobs.kind.table,
      concurrency,
      readyPerGroup,
      keptForOthers: KEPT_FOR_OTHERS,
      concernsOf: (claimed) => this.concernsOf(claimed),
      notifier,
      logger,
    });
    this.kind = jobs.kind;
  }

  /**
   * Brings one purchase to its outcome, or releases it for later. Returns whether it has ended.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable: it is retried
   */
  protected abstract fulfill(claimed: ClaimedPurchase<P>): Promise<boolean>;

  /** Additional attributes of its span. */
  protected attributesOf(_purchase: P): SpanRequest['attributes'] {
    return {};
  }

  protected override async run(claimed: ClaimedPurchase<P>): Promise<JobEnd> {
    const hasEnded = await this.parts.tracer.inSpan(this.spanOf(claimed), async (span) => {
      try {
        return await this.fulfill(claimed);
      } catch (error) {
        span.fail((error as Error).name);
        await this.retryLater(claimed, error as Error);
        return false;
      }
    });
    // A claim schedules the next one for a purchase that was postponed.
    return { refetch: !hasEnded };
  }

  /** Whatever the error, only the provider's result ends a purchase (D22), so it is looked up again. */
  private async retryLater(claimed: ClaimedPurchase<P>, error: Error): Promise<void> {
    const { name, noun } = this.kind;
    const { id, attempts } = claimed.purchase;
    const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
    this.parts.logger[known ? 'warn' : 'error'](
      { event: `${name}.attempt_failed`, [`${name}Id`]: id, attempt: attempts, err: error },
      `no response from the provider; retrying the ${noun}`,
    );
    await this.jobs.postpone(claimed, retryDelayMs(attempts, error), error.name);
  }

  private concernsOf({ purchase }: ClaimedPurchase<P>): Concerns {
    return { requestId: purchase.acceptedRequestId, [`${this.kind.name}Id`]: purchase.id };
  }

  /** Each job is a child of the call that accepted the purchase, however many one claim returned (D53). */
  private spanOf(claimed: ClaimedPurchase<P>): SpanRequest {
    const { purchase, claimedIn } = claimed;
    return {
      name: `${purchase.status === 'canceling' ? 'cancel' : 'process'} ${this.kind.name}`,
      kind: 'consumer',
      parent: parseTraceparent(purchase.traceparent),
      links: [claimedIn],
      concerns: this.concernsOf(claimed),
      attributes: {
        'esim.mode': purchase.mode,
        'esim.provider': purchase.provider,
        'esim.attempt': purchase.attempts,
        ...this.attributesOf(purchase),
      },
    };
  }
}
