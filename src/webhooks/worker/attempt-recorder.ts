import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import type { EntityManager } from 'typeorm';
import { Alerts } from '../../alerts/index.js';
import { AuditLog } from '../../audit/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { isTransientConflict, Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { maxAttempts, transitionsOf } from '../delivery-rules.js';
import type { FinishedAttempt } from './attempt-result.js';
import {
  type AffectedEndpoints,
  type BlockedEndpoint,
  EndpointTransitionsRepository,
} from './endpoint-transitions.repository.js';
import { OutcomesRepository, type RecordedAttempt } from './outcomes.repository.js';
import { WebhookMetrics } from './webhook-metrics.js';

interface Recorded {
  readonly recorded: readonly RecordedAttempt[];
  readonly blocked: readonly BlockedEndpoint[];
}

/**
 * Records finished attempts, many at once: by one statement those that change no endpoint, which are nearly all; the
 * others with the blocks and resets that follow from them, in one transaction.
 */
@Injectable()
export class AttemptRecorder {
  /** A caller that tries again after a failure names them again. */
  private readonly done = new WeakSet<FinishedAttempt>();

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly transactions: Transactions,
    private readonly outcomes: OutcomesRepository,
    private readonly endpoints: EndpointTransitionsRepository,
    private readonly audit: AuditLog,
    private readonly alerts: Alerts,
    private readonly metrics: WebhookMetrics,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'webhooks'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** @throws Error of the database; what was recorded before it is not recorded again by another call */
  async record(owner: string, attempts: readonly FinishedAttempt[]): Promise<void> {
    const open = attempts.filter((attempt) => !this.done.has(attempt));
    const alone = await this.recordAlone(owner, open);
    const ids = new Set(alone.map(({ deliveryId }) => deliveryId));
    this.report(
      open.filter(({ deliveryId }) => ids.has(deliveryId)),
      { recorded: alone, blocked: [] },
    );
    const others = open.filter(({ deliveryId }) => !ids.has(deliveryId));
    if (others.length === 0) return;
    this.report(others, await this.transactions.run((tx) => this.write(tx, owner, others)));
  }

  /** What changes no endpoint and still holds its lease; the rest is left for a transaction. */
  private async recordAlone(
    owner: string,
    attempts: readonly FinishedAttempt[],
  ): Promise<readonly RecordedAttempt[]> {
    try {
      return await this.outcomes.record(this.manager, owner, attempts, this.affectedBy(attempts));
    } catch (error) {
      // A transaction is run again after a deadlock.
      if (isTransientConflict(error)) return [];
      throw error;
    }
  }

  private report(attempts: readonly FinishedAttempt[], { recorded, blocked }: Recorded): void {
    for (const attempt of attempts) this.done.add(attempt);
    this.metrics.countAttempts(recordedOf(attempts, recorded));
    this.metrics.countBlocks(blocked);
    this.log(attempts, recorded, blocked);
  }

  private async write(tx: Tx, owner: string, attempts: readonly FinishedAttempt[]): Promise<Recorded> {
    const changesEndpoints = await this.endpoints.lock(tx, this.affectedBy(attempts));
    const recorded = await this.outcomes.record(tx.manager, owner, attempts);
    const timedOut = new Set(attempts.filter(isTimeout).map((attempt) => attempt.deliveryId));
    const blocked = changesEndpoints ? await this.applyTransitions(tx, recorded, timedOut) : [];
    return { recorded, blocked };
  }

  private affectedBy(attempts: readonly FinishedAttempt[]): AffectedEndpoints {
    const endpointsOf = (some: readonly FinishedAttempt[]): string[] => [
      ...new Set(some.map((attempt) => attempt.endpointId)),
    ];
    const mayExhaust = (attempt: FinishedAttempt): boolean =>
      attempt.outcome !== 'delivered' && attempt.countedAttempts + 1 >= maxAttempts(this.config.webhooks);
    return {
      exhausting: endpointsOf(attempts.filter(mayExhaust)),
      succeeding: endpointsOf(attempts.filter((attempt) => attempt.outcome === 'delivered')),
      failing: endpointsOf(attempts.filter((attempt) => attempt.outcome === 'failed')),
      timedOut: endpointsOf(attempts.filter(isTimeout)),
    };
  }

  private async applyTransitions(
    tx: Tx,
    recorded: readonly RecordedAttempt[],
    timedOut: ReadonlySet<string>,
  ): Promise<readonly BlockedEndpoint[]> {
    const { resetFirst, exhausted, resetLast } = transitionsOf(recorded);
    await this.endpoints.resetBlocks(tx, resetFirst);
    const blocked = await this.endpoints.block(tx, exhausted);
    await this.endpoints.resetBlocks(tx, resetLast);
    // A test has no effect on the endpoint (decisions, `webhook.test`).
    const endpointsThat = (isSo: (each: RecordedAttempt) => boolean): string[] =>
      recorded.filter((each) => each.kind !== 'test' && isSo(each)).map((each) => each.endpointId);
    await this.endpoints.adjustSlowStart(tx, {
      succeeding: endpointsThat((each) => each.outcome === 'delivered'),
      failing: endpointsThat((each) => each.outcome === 'failed'),
      timedOut: endpointsThat((each) => timedOut.has(each.deliveryId)),
    });
    for (const endpoint of blocked) await this.announce(tx, endpoint);
    return blocked;
  }

  /** A block is an alert; a disable is an alert and an audit entry (D31). */
  private async announce(tx: Tx, endpoint: BlockedEndpoint): Promise<void> {
    const { id: subjectId, partnerId, disabled, consecutiveBlocks } = endpoint;
    const details = { consecutive_blocks: consecutiveBlocks };
    const type = disabled ? 'endpoint.disabled' : 'endpoint.blocked';
    await this.alerts.raise(tx, { type, partnerId, subjectId, details });
    if (disabled) await this.auditDisable(tx, endpoint);
  }

  private async auditDisable(tx: Tx, endpoint: BlockedEndpoint): Promise<void> {
    await this.audit.record(tx, {
      actor: 'system',
      action: 'webhook_endpoint.disabled',
      partnerId: endpoint.partnerId,
      subjectId: endpoint.id,
      details: { reason: 'consecutive_blocks', consecutive_blocks: endpoint.consecutiveBlocks },
    });
  }

  private log(
    attempts: readonly FinishedAttempt[],
    recorded: readonly RecordedAttempt[],
    blocked: readonly BlockedEndpoint[],
  ): void {
    const byId = new Map(recorded.map((row) => [row.deliveryId, row]));
    for (const attempt of attempts) {
      const row = byId.get(attempt.deliveryId);
      const line = lineOf(attempt);
      if (row)
        this.logger.info({ event: 'webhook.attempt', attempt: row.number, status: row.status, ...line });
      else
        this.logger.warn(
          { event: 'webhook.lease_lost', ...line },
          'outcome not recorded: the lease is another',
        );
    }
    for (const { id, partnerId, disabled, consecutiveBlocks } of blocked) {
      const event = disabled ? 'webhook.endpoint_disabled' : 'webhook.endpoint_blocked';
      this.logger.warn({ event, endpointId: id, partnerId, consecutiveBlocks });
    }
  }
}

function lineOf({ deliveryId, endpointId, orderId, traceId, ...attempt }: FinishedAttempt) {
  const { outcome, statusCode, latencyMs, error } = attempt;
  return {
    ...{ deliveryId, endpointId, outcome, statusCode, latencyMs: Math.round(latencyMs), error },
    ...(orderId === null ? {} : { orderId }),
    ...(traceId === null ? {} : { trace_id: traceId }),
  };
}

function isTimeout({ outcome, error }: FinishedAttempt): boolean {
  return outcome === 'failed' && error === 'timeout';
}

/** Those that still held their lease. */
function recordedOf(
  attempts: readonly FinishedAttempt[],
  recorded: readonly RecordedAttempt[],
): readonly FinishedAttempt[] {
  const ids = new Set(recorded.map((each) => each.deliveryId));
  return attempts.filter((attempt) => ids.has(attempt.deliveryId));
}
