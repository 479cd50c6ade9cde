import { Processor } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { Clock } from '../../common/clock.js';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { SecretBox } from '../../infra/crypto/index.js';
import { InjectNotifier, type JobEnd, JobWorker, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { METRICS, observeBatches } from '../../infra/metrics.js';
import { Sweeper } from '../../infra/sweeps.js';
import { Tracer } from '../../infra/tracing/index.js';
import { DELIVERY_JOBS, DeliveryFanOut, type ReservedSlot } from '../delivery-fan-out.js';
import { AttemptPerformer, DecryptedSecretCache } from './attempt-performer.js';
import { AttemptRecorder } from './attempt-recorder.js';
import { DeliveriesRepository, type StartedDelivery } from './deliveries.repository.js';
import { DeliveryTracesRepository } from './delivery-traces.repository.js';
import { EndpointLeases } from './endpoint-leases.js';
import { EndpointShares } from './endpoint-shares.js';
import { OutcomeBatcher, type OutcomeBatcherOptions } from './outcome-batcher.js';
import { OwnedDeliveries } from './owned-deliveries.js';
import { RunningAttempts } from './running-attempts.js';
import { WebhookSender } from './webhook-sender.js';

/** Maximum share of the slots for all endpoints of one partner and mode (D42). */
const OWNER_SHARE = 1 / 16;
/** Share of the slots reserved for partners without an attempt in flight (D42). */
const KEPT_FOR_OTHERS = 1 / 2;
/** An attempt that takes this share of its timeout, 5 s of 60 s, marks its endpoint as slow (D42). */
const SLOW_SHARE = 1 / 12;
/**
 * Share of the shutdown timeout that attempts may use; the rest is for recording their outcomes and for the other apps.
 */
const DRAIN_SHARE = 0.6;
/** Time to record attempts that a shutdown has interrupted (D30). */
const RECORD_MS = 1_000;
const BALANCE_EVERY_MS = 1_000;
const STORE_PHASES_EVERY_MS = 1_000;

/**
 * Sends deliveries. A group is an endpoint, so a hanging receiver fills only its own concurrency (D34). Only one
 * process at a time sends to an endpoint (D56). For each endpoint with due deliveries: lease it (`EndpointLeases`),
 * claim its oldest due deliveries (`OwnedDeliveries`), sign and send each (`AttemptPerformer`), record the outcome by
 * the rules of `delivery-rules.ts` (`AttemptRecorder`), and claim again. When this process dies, its leases lapse. The
 * next owner records the attempts in flight as interrupted and sends their deliveries again.
 */
@Processor(DELIVERY_JOBS, { concurrency: 8 })
export class DeliveryWorker extends JobWorker<StartedDelivery> {
  private readonly performer: AttemptPerformer;
  private readonly shares: EndpointShares;
  private readonly balancer: Sweeper;
  private readonly phases: Sweeper;

  constructor(
    @Inject(APP_CONFIG) config: AppConfig,
    @Inject(LOGGER) logger: Logger,
    @InjectNotifier(DELIVERY_JOBS) notifier: WorkerNotifier,
    private readonly owned: OwnedDeliveries,
    deliveries: DeliveriesRepository,
    private readonly leases: EndpointLeases,
    private readonly fanOut: DeliveryFanOut,
    private readonly sender: WebhookSender,
    recorder: AttemptRecorder,
    box: SecretBox,
    clock: Clock,
    @Inject(METRICS) metrics: Registry,
    tracer: Tracer,
    traces: DeliveryTracesRepository,
  ) {
    super(owned, {
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
      record: (attempts) => recorder.record(attempts),
      patienceMs: config.leaseMs,
      logger,
      sized: observeBatches(metrics, 'webhook_outcomes'),
    };
    const newBatcher = (maxInFlight: number): OutcomeBatcher =>
      new OutcomeBatcher({ ...outcomes, maxInFlight });
    // Concurrent transactions: fewer for Sandbox, which leaves most of the pool's connections to Live (D41).
    const batchers = { live: newBatcher(4), sandbox: newBatcher(2) };
    const secrets = new DecryptedSecretCache(box);
    const { timeoutMs } = config.webhooks;
    const isStopping = (): boolean => this.runner.isStopping;
    const ownerOf = (endpointId: string): string => owned.ownerOf(endpointId)?.id ?? endpointId;
    const running = new RunningAttempts(deliveries);
    const parts = {
      deliveries,
      leases,
      batchers,
      sender,
      running,
      secrets,
      clock,
      logger,
      tracer,
      traces,
      timeoutMs,
    };
    this.performer = new AttemptPerformer({ ...parts, isStopping, ownerOf });
    const isWaiting = (endpointId: string): boolean => this.runner.isWaiting(endpointId);
    this.shares = new EndpointShares({ leases, notifier, logger, isWaiting });
    this.balancer = new Sweeper({
      name: 'webhooks.shares',
      intervalMs: BALANCE_EVERY_MS,
      logger,
      run: () => this.shares.balance(),
    });
    this.phases = new Sweeper({
      name: 'webhooks.phases',
      intervalMs: STORE_PHASES_EVERY_MS,
      logger,
      run: () => running.storePhases(),
    });
  }

  /** Reserves one slot at each endpoint of the partner and mode that this process owns and could send to now. */
  private reserve(partnerId: string, mode: Mode): readonly ReservedSlot[] {
    const slots: ReservedSlot[] = [];
    for (const endpoint of this.leases.of(partnerId, mode)) {
      const { id: endpointId, fence, leaving } = endpoint;
      if (leaving || !this.leases.isSure(endpointId, fence) || this.owned.freeSlotsOf(endpoint) < 1) continue;
      const slot = this.runner.reserve(endpointId);
      if (!slot) continue;
      this.leases.count(endpointId, 1);
      endpoint.lastUsedAtMs = performance.now();
      const giveBack = (mayBeStarted: boolean): void => {
        if (mayBeStarted) this.shares.abandon(endpointId);
        slot.giveBack();
        this.leases.count(endpointId, -1);
        void this.shares.attemptEnded(endpointId);
      };
      slots.push({ endpointId, fence, begin: (delivery) => slot.begin(delivery), giveBack });
    }
    return slots;
  }

  protected override has(endpointId: string): boolean {
    return this.leases.get(endpointId) !== undefined;
  }

  protected override load(): number {
    return this.leases.all.length;
  }

  /**
   * The endpoint claims again after anything but a 2xx, because a failed delivery is due later and one that was put
   * back unsent may be due now. Only a response, or its absence, shows how fast the receiver is.
   */
  protected override async run(delivery: StartedDelivery, control: AbortController): Promise<JobEnd> {
    const { endpointId } = delivery;
    try {
      const outcome = await this.performer.perform(delivery, control);
      const wasTimed = outcome === 'delivered' || outcome === 'failed';
      return { refetch: outcome !== 'delivered', wasTimed };
    } catch (error) {
      // The row still shows an attempt in flight, which the endpoint's next owner will find.
      this.shares.abandon(endpointId);
      throw error;
    } finally {
      this.leases.count(endpointId, -1);
      await this.shares.attemptEnded(endpointId);
    }
  }

  override onApplicationBootstrap(): void {
    super.onApplicationBootstrap();
    this.balancer.start();
    this.phases.start();
    this.fanOut.attach({
      owner: this.leases.owner,
      reserve: (partnerId, mode) => this.reserve(partnerId, mode),
    });
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await this.balancer.stop();
    await super.beforeApplicationShutdown();
    await this.phases.stop();
    await this.shares.giveUpAll();
    this.sender.close();
  }
}
