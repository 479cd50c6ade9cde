import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import { type EntityManager, In } from 'typeorm';
import { Alerts } from '../../alerts/index.js';
import { AuditLog } from '../../audit/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { NOW, Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import {
  afterAttempt,
  afterAttempts,
  afterAttemptOfDiscarded,
  type DeliveryRules,
  type EndedAttempt,
  type EndpointState,
  takesAttempts,
  windowAfter,
} from '../delivery-rules.js';
import { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import type { FinishedAttempt } from './attempt-result.js';
import {
  type AttemptOutcomeRow,
  DeliveriesRepository,
  type RecordedAttempt,
} from './deliveries.repository.js';
import { EndpointLeases } from './endpoint-leases.js';
import { WebhookMetrics } from './webhook-metrics.js';

/** An endpoint that was blocked, or disabled after its last block (D31). */
export interface BlockedEndpoint {
  readonly id: string;
  readonly partnerId: string;
  readonly disabled: boolean;
  readonly consecutiveBlocks: number;
}

type RecordedById = ReadonlyMap<string, RecordedAttempt>;

/**
 * Records finished attempts in batches and applies the rules. One statement records the attempts that leave their
 * endpoint unchanged, which are nearly all. The others are recorded in one transaction with the change to their
 * endpoints.
 */
@Injectable()
export class AttemptRecorder {
  private readonly rules: DeliveryRules;
  /** Attempts that are already recorded. A caller that retries after a failure passes them again. */
  private readonly done = new WeakSet<FinishedAttempt>();

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly transactions: Transactions,
    private readonly deliveries: DeliveriesRepository,
    private readonly leases: EndpointLeases,
    private readonly audit: AuditLog,
    private readonly alerts: Alerts,
    private readonly metrics: WebhookMetrics,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'webhooks'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.rules = config.webhooks;
  }

  /** @throws a database error; attempts recorded before it are not recorded again by another call */
  async record(attempts: readonly FinishedAttempt[]): Promise<void> {
    const open = attempts.filter((attempt) => !this.done.has(attempt)).map((attempt) => this.judge(attempt));
    const changing = new Set(open.filter((row) => this.mayChangeEndpoint(row)).map(endpointIdOf));
    const quiet = open.filter((row) => !changing.has(endpointIdOf(row)));
    if (quiet.length > 0) this.report(quiet, await this.write(this.manager, quiet), []);
    const others = open.filter((row) => changing.has(endpointIdOf(row)));
    if (others.length === 0) return;
    const [recorded, blocked] = await this.transactions.run((tx) =>
      this.writeWithEndpoints(tx, others, [...changing]),
    );
    this.report(others, recorded, blocked);
  }

  /** The next state of the attempt's delivery. */
  private judge(attempt: FinishedAttempt): AttemptOutcomeRow {
    const after = afterAttempt(this.rules, attempt, attempt.outcome);
    return { attempt, after, afterGivenUp: afterAttemptOfDiscarded(this.rules, attempt, attempt.outcome) };
  }

  /** A success changes only an endpoint that has blocks to reset; a test changes none. */
  private mayChangeEndpoint({ attempt: { kind, outcome, endpointId }, after }: AttemptOutcomeRow): boolean {
    if (kind === 'test') return false;
    if (after.exhausted) return true;
    return outcome === 'delivered' && this.leases.get(endpointId)?.consecutiveBlocks !== 0;
  }

  private async write(manager: EntityManager, rows: readonly AttemptOutcomeRow[]): Promise<RecordedById> {
    const recorded = await this.deliveries.record(manager, this.leases.owner, rows);
    return new Map(recorded.map((each) => [each.deliveryId, each]));
  }

  /** Lock order is endpoint, delivery (D40). */
  private async writeWithEndpoints(
    tx: Tx,
    rows: readonly AttemptOutcomeRow[],
    endpointIds: readonly string[],
  ): Promise<readonly [RecordedById, readonly BlockedEndpoint[]]> {
    const endpoints = await tx.manager.find(WebhookEndpointEntity, {
      where: { id: In(endpointIds) },
      order: { id: 'ASC' },
      lock: { mode: 'for_no_key_update' },
    });
    const recorded = await this.write(tx.manager, rows);
    const blocked: BlockedEndpoint[] = [];
    for (const { id, partnerId, ...endpoint } of endpoints) {
      const before = stateOf(endpoint);
      const after = afterAttempts(this.rules, before, endedAttempts(id, rows, recorded));
      const { consecutiveBlocks, enabled } = after;
      const isBlocked = takesAttempts(before) && !takesAttempts(after);
      if (isBlocked) blocked.push({ id, partnerId, disabled: !enabled, consecutiveBlocks });
      if (isBlocked || consecutiveBlocks !== before.consecutiveBlocks)
        await this.save(tx, id, after, isBlocked);
    }
    for (const endpoint of blocked) await this.announce(tx, endpoint);
    return [recorded, blocked];
  }

  /** Uses the database's times (D40). */
  private async save(tx: Tx, id: string, after: EndpointState, isBlocked: boolean): Promise<void> {
    const { consecutiveBlocks, enabled } = after;
    const now = (): string => NOW;
    const block = {
      slowStartSince: now,
      blockedUntil: () => `${now()} + ${this.rules.blockMs} * interval '1 millisecond'`,
    };
    const disable = {
      ...block,
      enabled,
      blockedUntil: null,
      disabledReason: 'consecutive_blocks',
      disabledAt: now,
    } as const;
    const change = isBlocked ? (enabled ? block : disable) : {};
    await tx.manager.update(WebhookEndpointEntity, { id }, { consecutiveBlocks, updatedAt: now, ...change });
    tx.afterCommit(() => {
      const owned = this.leases.get(id);
      if (owned) owned.consecutiveBlocks = consecutiveBlocks;
    });
  }

  private report(
    rows: readonly AttemptOutcomeRow[],
    recorded: RecordedById,
    blocked: readonly BlockedEndpoint[],
  ): void {
    const attempts = rows.map(({ attempt }) => attempt);
    for (const attempt of attempts) this.done.add(attempt);
    const kept = attempts.filter(({ deliveryId }) => recorded.has(deliveryId));
    this.metrics.countAttempts(kept);
    this.metrics.countBlocks(blocked);
    for (const [endpointId, some] of Map.groupBy(kept, endpointOf)) this.adjustWindow(endpointId, some);
    this.log(attempts, recorded, blocked);
  }

  /** Adjusts the window for attempts that ended together; tests have no effect. */
  private adjustWindow(endpointId: string, all: readonly FinishedAttempt[]): void {
    const endpoint = this.leases.get(endpointId);
    const attempts = all.filter(({ kind }) => kind !== 'test');
    if (!endpoint || attempts.length === 0) return;
    const delivered = attempts.some(({ outcome }) => outcome === 'delivered');
    const failed = attempts.some(({ outcome }) => outcome === 'failed');
    const seen = { delivered, failed, timedOut: attempts.some(isTimeout) };
    endpoint.window = windowAfter(this.rules, endpoint.window, seen, performance.now());
    const { window, slowStart } = endpoint;
    if (window.width !== null || !slowStart || slowStart.isOver) return;
    slowStart.isOver = true;
    this.deliveries.endSlowStart(endpointId, slowStart.since).catch((error: unknown) => {
      const line = { event: 'webhook.slow_start_kept', endpointId, err: error };
      this.logger.warn(line, 'the next owner starts slowly');
    });
  }

  /** A block raises an alert; a disable raises an alert and is audited (D31). */
  private async announce(tx: Tx, endpoint: BlockedEndpoint): Promise<void> {
    const { id: subjectId, partnerId, disabled, consecutiveBlocks } = endpoint;
    const details = { consecutive_blocks: consecutiveBlocks };
    const type = disabled ? 'endpoint.disabled' : 'endpoint.blocked';
    await this.alerts.raise(tx, { type, partnerId, subjectId, details });
    if (!disabled) return;
    await this.audit.record(tx, {
      actor: 'system',
      action: 'webhook_endpoint.disabled',
      partnerId,
      subjectId,
      details: { reason: 'consecutive_blocks', ...details },
    });
  }

  private log(
    attempts: readonly FinishedAttempt[],
    recorded: RecordedById,
    blocked: readonly BlockedEndpoint[],
  ): void {
    for (const attempt of attempts) {
      const row = recorded.get(attempt.deliveryId);
      const line = lineOf(attempt);
      if (row)
        this.logger.info({ event: 'webhook.attempt', attempt: row.number, status: row.status, ...line });
      else
        this.logger.warn(
          { event: 'webhook.lease_lost', ...line },
          'outcome not recorded: the endpoint has another owner',
        );
    }
    for (const { id, partnerId, disabled, consecutiveBlocks } of blocked) {
      const event = disabled ? 'webhook.endpoint_disabled' : 'webhook.endpoint_blocked';
      this.logger.warn({ event, endpointId: id, partnerId, consecutiveBlocks });
    }
  }
}

const endpointOf = ({ endpointId }: FinishedAttempt): string => endpointId;
const endpointIdOf = ({ attempt }: AttemptOutcomeRow): string => attempt.endpointId;

function stateOf({
  enabled,
  deletedAt,
  blocked,
  consecutiveBlocks,
}: Pick<WebhookEndpointEntity, 'enabled' | 'deletedAt' | 'blocked' | 'consecutiveBlocks'>): EndpointState {
  return { enabled, deleted: deletedAt !== null, blocked, consecutiveBlocks };
}

/** The endpoint's recorded attempts in the order in which they ended. */
function endedAttempts(
  endpointId: string,
  rows: readonly AttemptOutcomeRow[],
  recorded: RecordedById,
): readonly EndedAttempt[] {
  return rows
    .map(({ attempt }) => attempt)
    .filter((attempt) => attempt.endpointId === endpointId && recorded.has(attempt.deliveryId))
    .toSorted((a, b) => a.endedAt - b.endedAt)
    .map(({ kind, outcome, deliveryId }) => ({
      kind,
      outcome,
      exhausted: recorded.get(deliveryId)!.exhausted,
    }));
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
