import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { AuditLog } from '../../audit/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import type { FinishedAttempt } from './finished-attempt.js';
import { type BlockedEndpoint, OutcomesRepository, type RecordedAttempt } from './outcomes.repository.js';
import { verdictsOf } from './endpoint-verdicts.js';

/** Records finished attempts, many at once, with the blocks and resets that follow from them, in one transaction. */
@Injectable()
export class AttemptRecorder {
  constructor(
    private readonly transactions: Transactions,
    private readonly outcomes: OutcomesRepository,
    private readonly audit: AuditLog,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async record(owner: string, attempts: readonly FinishedAttempt[]): Promise<void> {
    const { recorded, blocked } = await this.transactions.run((tx) => this.write(tx, owner, attempts));
    this.log(attempts, recorded, blocked);
  }

  private async write(
    tx: Tx,
    owner: string,
    attempts: readonly FinishedAttempt[],
  ): Promise<{ recorded: readonly RecordedAttempt[]; blocked: readonly BlockedEndpoint[] }> {
    const { exhausting, succeeding } = this.endpointsAtStake(attempts);
    const touchesEndpoints =
      exhausting.length + succeeding.length > 0 &&
      (await this.outcomes.lockEndpoints(tx, exhausting, succeeding));
    const recorded = await this.outcomes.record(tx, owner, attempts);
    const blocked = touchesEndpoints ? await this.applyVerdicts(tx, recorded) : [];
    return { recorded, blocked };
  }

  private endpointsAtStake(attempts: readonly FinishedAttempt[]): {
    exhausting: string[];
    succeeding: string[];
  } {
    const exhausting = attempts.filter(
      (attempt) =>
        attempt.outcome !== 'delivered' && attempt.countedAttempts + 1 >= this.outcomes.maxAttempts,
    );
    const succeeding = attempts.filter((attempt) => attempt.outcome === 'delivered');
    return {
      exhausting: [...new Set(exhausting.map((attempt) => attempt.endpointId))],
      succeeding: [...new Set(succeeding.map((attempt) => attempt.endpointId))],
    };
  }

  private async applyVerdicts(
    tx: Tx,
    recorded: readonly RecordedAttempt[],
  ): Promise<readonly BlockedEndpoint[]> {
    const { resetFirst, exhausted, resetLast } = verdictsOf(recorded);
    await this.outcomes.resetBlocks(tx, resetFirst);
    const blocked = await this.outcomes.block(tx, exhausted);
    await this.outcomes.resetBlocks(tx, resetLast);
    for (const endpoint of blocked) {
      if (endpoint.disabled) await this.auditDisable(tx, endpoint);
    }
    return blocked;
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
    for (const { deliveryId, endpointId, outcome, statusCode, latencyMs, error } of attempts) {
      const row = byId.get(deliveryId);
      const line = { deliveryId, endpointId, outcome, statusCode, latencyMs: Math.round(latencyMs), error };
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
