import { Processor } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { Clock } from '../../common/clock.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { SecretBox } from '../../infra/crypto/index.js';
import { InjectNotifier, type JobEnd, JobWorker, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { METRICS, observeBatches } from '../../infra/metrics.js';
import { Tracer } from '../../infra/tracing/index.js';
import { DELIVERY_JOBS } from '../delivery-fan-out.js';
import { AttemptPerformer, DecryptedSecretCache } from './attempt-performer.js';
import { AttemptRecorder } from './attempt-recorder.js';
import { type ClaimedDelivery, DeliveryJobsRepository } from './delivery-jobs.repository.js';
import { DeliveryTracesRepository } from './delivery-traces.repository.js';
import { OutcomeBatcher, type OutcomeBatcherOptions } from './outcome-batcher.js';
import { WebhookSender } from './webhook-sender.js';

/** Of the slots, for the endpoints of one partner and mode together (D42). */
const OWNER_SHARE = 1 / 16;
/** Of the slots, for partners that have no attempt under way: each finds one beside those that hang (D42). */
const KEPT_FOR_OTHERS = 1 / 2;
/** Of the time that an attempt has: 5 s of the document's 60 s make its endpoint slow (D42). */
const SLOW_SHARE = 1 / 12;
/** The part of a stop's time in which attempts may still end; the rest is for their outcomes and the other apps. */
const DRAIN_SHARE = 0.6;
/** For the records of attempts that a stop has interrupted (D30). */
const RECORD_MS = 1_000;

/** Sends what is owed: one group per endpoint, so that a hanging receiver fills its own concurrency only (D34). */
@Processor(DELIVERY_JOBS, { concurrency: 8 })
export class DeliveryWorker extends JobWorker<ClaimedDelivery> {
  private readonly performer: AttemptPerformer;

  constructor(
    @Inject(APP_CONFIG) config: AppConfig,
    @Inject(LOGGER) logger: Logger,
    @InjectNotifier(DELIVERY_JOBS) notifier: WorkerNotifier,
    jobs: DeliveryJobsRepository,
    private readonly sender: WebhookSender,
    recorder: AttemptRecorder,
    box: SecretBox,
    clock: Clock,
    @Inject(METRICS) metrics: Registry,
    tracer: Tracer,
    traces: DeliveryTracesRepository,
  ) {
    super(jobs, {
      name: 'webhooks',
      concurrencyPerGroup: config.webhooks.concurrencyPerEndpoint,
      concurrency: config.webhooks.concurrency,
      ownerShare: OWNER_SHARE,
      keptForOthers: KEPT_FOR_OTHERS,
      slowAfterMs: config.webhooks.timeoutMs * SLOW_SHARE,
      sweepIntervalMs: config.sweepIntervalMs,
      leaseMs: config.leaseMs,
      drainMs: config.shutdownTimeoutMs * DRAIN_SHARE,
      recordMs: RECORD_MS,
      concernsOf: ({ id, endpointId }) => ({ deliveryId: id, endpointId }),
      notifier,
      logger,
    });
    const outcomes: Omit<OutcomeBatcherOptions, 'maxInFlight'> = {
      record: (attempts) => recorder.record(jobs.owner, attempts),
      patienceMs: config.leaseMs,
      logger,
      sized: observeBatches(metrics, 'webhook_outcomes'),
    };
    const newBatcher = (maxInFlight: number): OutcomeBatcher =>
      new OutcomeBatcher({ ...outcomes, maxInFlight });
    // Sandbox's share of the pool is the smaller one, whatever somebody has locked (D41).
    const batchers = { live: newBatcher(4), sandbox: newBatcher(2) };
    const secrets = new DecryptedSecretCache(box);
    const isStopping = (): boolean => this.runner.isStopping;
    const parts = { jobs, batchers, sender, secrets, clock, logger, tracer, traces, isStopping };
    this.performer = new AttemptPerformer(parts);
  }

  /**
   * A 2xx makes nothing due. A failure makes its delivery due later; a lease given back may be due now. Another
   * worker's attempt that fills the window is no matter of this one: the claim has said when to come back.
   */
  protected override async run(delivery: ClaimedDelivery, control: AbortController): Promise<JobEnd> {
    const outcome = await this.performer.perform(delivery, control);
    // What was given back, or is known from a lapsed lease, says nothing of the receiver.
    const wasTimed = outcome === 'delivered' || outcome === 'failed';
    return { refetch: outcome !== 'delivered', wasTimed };
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    this.sender.close();
  }
}
