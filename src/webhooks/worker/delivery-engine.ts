import { randomUUID } from 'node:crypto';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { Clock } from '../../common/clock.js';
import { endsWithin } from '../../common/ends-within.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { SecretBox } from '../../infra/crypto/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import {
  InjectWakeUps,
  LaneRunner,
  type LaneWork,
  type LookAfterwards,
  WakeUps,
} from '../../infra/queue/index.js';
import { Sweeper } from '../../infra/sweeping/index.js';
import { WEBHOOK_WAKE_UPS_QUEUE } from '../wake-ups.js';
import { AttemptPerformer } from './attempt-performer.js';
import { AttemptRecorder } from './attempt-recorder.js';
import { ClaimTurns } from './claim-turns.js';
import type { ClaimedDelivery } from './claimed-delivery.js';
import { ClaimsRepository, type LeaseTerms } from './claims.repository.js';
import { Leases } from './leases.js';
import { NextLooks } from './next-looks.js';
import { OpenedSecrets } from './opened-secrets.js';
import { OutcomeBatcher } from './outcome-batcher.js';
import { WebhookSender } from './webhook-sender.js';

/** Attempts under way at once in this process; each is little more than a socket. */
const TOTAL_SLOTS = 2_048;
/** Claims under way at once; more would only queue for the pool. */
const CLAIMS_AT_ONCE = 6;
/** The part of a stop's time in which attempts may still end; the rest is for their outcomes and the other apps. */
const DRAIN_SHARE = 0.6;
const LAST_RECORDS_MS = 1_000;
const ENDPOINTS_PER_SWEEP = 1_000;

/** Sends what is owed: one lane per endpoint, so that a hanging receiver fills its own slots only (D34). */
@Injectable()
export class DeliveryEngine
  implements LaneWork<ClaimedDelivery>, OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown
{
  private readonly terms: LeaseTerms;
  private readonly runner: LaneRunner<ClaimedDelivery>;
  private readonly leases: Leases;
  private readonly looks: NextLooks;
  private readonly sweeper: Sweeper;
  private readonly performer: AttemptPerformer;
  private readonly turns = new ClaimTurns(CLAIMS_AT_ONCE);
  private readonly nextLookMs = new Map<string, number>();
  private readonly drained = new Set<string>();
  private sweptTo = '';
  private draining: Promise<void> = Promise.resolve();

  constructor(
    @Inject(APP_CONFIG) private readonly config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    @InjectWakeUps(WEBHOOK_WAKE_UPS_QUEUE) wakeUps: WakeUps,
    private readonly claims: ClaimsRepository,
    private readonly sender: WebhookSender,
    recorder: AttemptRecorder,
    box: SecretBox,
    clock: Clock,
  ) {
    const owner = `worker-${process.pid}-${randomUUID()}`;
    this.terms = { owner, leaseMs: config.leaseMs };
    this.leases = new Leases({ terms: this.terms, claims, logger });
    this.looks = new NextLooks(wakeUps, (lane) => this.wake(lane));
    this.sweeper = new Sweeper({
      name: 'webhooks.due',
      intervalMs: config.sweepIntervalMs,
      logger,
      run: () => this.sweep(),
    });
    const batcher = new OutcomeBatcher({
      record: (attempts) => recorder.record(owner, attempts),
      patienceMs: config.leaseMs,
      logger,
    });
    const { terms, leases } = this;
    const secrets = new OpenedSecrets(box);
    this.performer = new AttemptPerformer({ terms, leases, claims, batcher, sender, secrets, clock, logger });
    this.runner = new LaneRunner(this, {
      slotsPerLane: config.webhooks.concurrencyPerEndpoint,
      totalSlots: TOTAL_SLOTS,
      logger,
      wakeAt: (lane, at) => this.looks.at(lane, at),
    });
  }

  /** Attempts under way in this process. */
  get inFlight(): number {
    return this.runner.inFlight;
  }

  onApplicationBootstrap(): void {
    this.leases.start();
    this.sweeper.start();
  }

  /** Looks at an endpoint; returns at once. */
  wake(endpointId: string): void {
    this.runner.wake(endpointId);
  }

  async claim(endpointId: string, slots: number): Promise<readonly ClaimedDelivery[]> {
    const { deliveries, nextLookMs, isDrained } = await this.turns.take(() =>
      this.claims.claim(this.terms, endpointId, slots),
    );
    if (nextLookMs === null) this.nextLookMs.delete(endpointId);
    else this.nextLookMs.set(endpointId, nextLookMs);
    if (isDrained) this.drained.add(endpointId);
    else this.drained.delete(endpointId);
    return deliveries;
  }

  /** The claim just before this has brought the answer with it. */
  nextDueAt(endpointId: string): Promise<Date | null> {
    const waitMs = this.nextLookMs.get(endpointId);
    this.nextLookMs.delete(endpointId);
    // The wait is the database's; the time is this process's, for whose timers it is meant (D40).
    return Promise.resolve(waitMs === undefined ? null : new Date(Date.now() + waitMs));
  }

  /**
   * Looks again afterwards, unless the last look left nothing due and slots free. Whoever finds no slot because of
   * another worker's attempts comes back by itself; a failure has made something due later.
   */
  async perform(delivery: ClaimedDelivery): Promise<LookAfterwards> {
    const outcome = await this.performer.perform(delivery);
    return outcome === 'delivered' && this.drained.has(delivery.endpointId) ? 'enough' : 'look';
  }

  /** The lane has no work under way. */
  forget(endpointId: string): void {
    this.drained.delete(endpointId);
    this.nextLookMs.delete(endpointId);
  }

  /** Begins here, so that every drain of the process has the whole time: Nest waits for hooks one by one. */
  onModuleDestroy(): void {
    this.draining = this.drain().catch((error: unknown) => {
      this.logger.warn({ event: 'webhook.drain_failed', err: error }, 'leases will lapse');
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.draining;
  }

  /** Claims nothing more, lets attempts end for a while, and records the rest as interrupted (D30). */
  private async drain(): Promise<void> {
    this.performer.stop();
    this.looks.stop();
    const drained = this.runner.stop();
    await this.sweeper.stop();
    if (!(await endsWithin(drained, this.config.shutdownTimeoutMs * DRAIN_SHARE))) {
      const count = this.leases.interruptAll();
      this.logger.warn(
        { event: 'webhook.attempts_interrupted', count },
        'stopping: they are sent again later',
      );
      await endsWithin(drained, LAST_RECORDS_MS);
    }
    await this.leases.stop();
    this.sender.close();
  }

  /** Finds what is due without a wake-up: a lost job, a lost queue, a dead process (D1). Goes round the endpoints. */
  private async sweep(): Promise<void> {
    const found = await this.claims.endpointsWithDueDeliveries(this.sweptTo, ENDPOINTS_PER_SWEEP);
    this.sweptTo = found.length < ENDPOINTS_PER_SWEEP ? '' : (found.at(-1) ?? '');
    for (const endpointId of found) this.wake(endpointId);
  }
}
