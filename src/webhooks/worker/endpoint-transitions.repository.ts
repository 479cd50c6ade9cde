import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { sql, type Tx } from '../../infra/database/index.js';
import { type DeliveryRules, SLOW_START_STEP_MS } from '../delivery-rules.js';

/** An endpoint that was blocked, or disabled by its last block (D31). */
export interface BlockedEndpoint {
  readonly id: string;
  readonly partnerId: string;
  readonly disabled: boolean;
  readonly consecutiveBlocks: number;
}

/** Endpoints that a batch of attempts may change. */
export interface AffectedEndpoints {
  /** One of their deliveries may be given up. */
  readonly exhausting: readonly string[];
  readonly succeeding: readonly string[];
  readonly failing: readonly string[];
  /** Of the failing, those that did not answer in time. */
  readonly timedOut: readonly string[];
}

/** By the attempts that one batch has recorded; tests have no part in it. */
export type SlowStartEndpoints = Omit<AffectedEndpoints, 'exhausting'>;

const NOW = 'statement_timestamp()';

/** SQL of what attempts mean for their endpoint, by delivery-rules.ts; every guard is in the statement (D31, D40). */
@Injectable()
export class EndpointTransitionsRepository {
  private readonly rules: DeliveryRules;

  constructor(@Inject(APP_CONFIG) config: Pick<AppConfig, 'webhooks'>) {
    this.rules = config.webhooks;
  }

  /**
   * Locks, in id order, the endpoints that these attempts may change: lock order is endpoint, deliveries, attempts
   * (D40). Answers concern an endpoint only while its count is above 0 or it starts slowly. False when there is none
   * to change.
   */
  async lock(tx: Tx, affected: AffectedEndpoints): Promise<boolean> {
    const { rows } = await sql(
      tx.manager,
      `SELECT 1 FROM webhook_endpoints
       WHERE id = ANY ($1) OR (id = ANY ($2) AND (consecutive_blocks > 0 OR ramp_window IS NOT NULL))
         OR (id = ANY ($3) AND ramp_window > 1) OR (id = ANY ($4) AND ramp_window IS DISTINCT FROM 1)
       ORDER BY id FOR NO KEY UPDATE`,
      [affected.exhausting, affected.succeeding, affected.failing, affected.timedOut],
    );
    return rows.length > 0;
  }

  /** `afterDelivered`: a 2xx ends the row of blocks; a running block is not shortened (D31). */
  async resetBlocks(tx: Tx, endpointIds: readonly string[]): Promise<void> {
    if (endpointIds.length === 0) return;
    await sql(
      tx.manager,
      `UPDATE webhook_endpoints
       SET consecutive_blocks = 0, last_success_at = ${NOW}, updated_at = ${NOW}
       WHERE id = ANY ($1) AND consecutive_blocks > 0`,
      [endpointIds],
    );
  }

  /**
   * `slowStart` (D31, D32: paced): the window of an endpoint that came back doubles while it answers 2xx, at most once
   * in SLOW_START_STEP_MS, until it is as wide as the setting; a failure halves it. A time-out narrows an endpoint of
   * any window, and to one unless it has answered others (D42).
   */
  async adjustSlowStart(tx: Tx, { succeeding, failing, timedOut }: SlowStartEndpoints): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE webhook_endpoints
       SET ramp_window = CASE
             WHEN id = ANY ($4) AND NOT id = ANY ($1) THEN 1
             WHEN id = ANY ($4) THEN greatest(1, coalesce(ramp_window, $3::int) / 2)
             WHEN id = ANY ($2) THEN greatest(1, ramp_window / 2)
             WHEN ramp_window * 2 < $3::int THEN ramp_window * 2 END,
           ramp_widened_at = ${NOW}
       WHERE (blocked_until IS NULL OR blocked_until <= ${NOW})
         AND (id = ANY ($4) AND ramp_window IS DISTINCT FROM 1
              OR id = ANY ($2) AND ramp_window > 1
              OR id = ANY ($1) AND NOT id = ANY ($2) AND ramp_window IS NOT NULL
                 AND (ramp_widened_at IS NULL
                      OR ramp_widened_at <= ${NOW} - ${SLOW_START_STEP_MS} * interval '1 millisecond'))`,
      [succeeding, failing, this.rules.concurrencyPerEndpoint, timedOut],
    );
  }

  /** `afterExhausted`: blocks endpoints that take attempts, counts the block, and disables at the last one (D31). */
  async block(tx: Tx, endpointIds: readonly string[]): Promise<readonly BlockedEndpoint[]> {
    if (endpointIds.length === 0) return [];
    const { rows } = await sql<BlockedRow>(
      tx.manager,
      `UPDATE webhook_endpoints
       SET consecutive_blocks = consecutive_blocks + 1,
           enabled = consecutive_blocks + 1 < $2::int,
           disabled_reason = CASE WHEN consecutive_blocks + 1 >= $2::int THEN 'consecutive_blocks' END,
           disabled_at = CASE WHEN consecutive_blocks + 1 >= $2::int THEN ${NOW} END,
           blocked_until = CASE WHEN consecutive_blocks + 1 < $2::int
             THEN ${NOW} + $3::int * interval '1 millisecond' END,
           ramp_window = 1, ramp_widened_at = NULL,
           updated_at = ${NOW}
       WHERE id = ANY ($1) AND enabled AND deleted_at IS NULL AND (blocked_until IS NULL OR blocked_until <= ${NOW})
       RETURNING id, partner_id, NOT enabled AS disabled, consecutive_blocks`,
      [endpointIds, this.rules.blocksBeforeDisable, this.rules.blockMs],
    );
    return rows.map((row) => ({
      id: row.id,
      partnerId: row.partner_id,
      disabled: row.disabled,
      consecutiveBlocks: row.consecutive_blocks,
    }));
  }
}

interface BlockedRow {
  id: string;
  partner_id: string;
  disabled: boolean;
  consecutive_blocks: number;
}
