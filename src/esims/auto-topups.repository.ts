import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { ErrorCode } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import { sql, type Tx } from '../infra/database/index.js';
import { AutoTopupEntity } from './auto-topup.entity.js';
import type { EsimEntity } from './esim.entity.js';

/** The terms that a partner sets. */
export type AutoTopupTerms = Pick<
  AutoTopupEntity,
  'atPercent' | 'packageId' | 'maxTimes' | 'maxPriceAmount' | 'maxPriceCurrency' | 'limitedKeyId'
>;

/** A usage threshold that an eSIM has just crossed. */
export interface CrossedThreshold {
  readonly esimId: string;
  readonly percent: number;
}

/** SQL of `esim_auto_topups`. Every writer holds the lock of the eSIM's row (D67). */
@Injectable()
export class AutoTopupsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  async find(esimId: string, manager: EntityManager = this.manager): Promise<AutoTopupEntity | null> {
    return manager.findOneBy(AutoTopupEntity, { esimId });
  }

  /**
   * Creates or changes the eSIM's rule. A change keeps the number of top-ups placed so far, so that a repeated call
   * never raises the total.
   */
  async set(tx: Tx, { id: esimId, mode }: EsimEntity, terms: AutoTopupTerms): Promise<AutoTopupEntity> {
    const rule = await this.find(esimId, tx.manager);
    if (rule && isDeepStrictEqual({ ...rule, ...terms }, { ...rule })) return rule;
    if (rule) await tx.manager.update(AutoTopupEntity, { esimId }, terms);
    else await tx.manager.insert(AutoTopupEntity, { esimId, mode, id: newId('atp'), ...terms });
    return tx.manager.findOneByOrFail(AutoTopupEntity, { esimId });
  }

  async delete(tx: Tx, esimId: string): Promise<void> {
    await tx.manager.delete(AutoTopupEntity, { esimId });
  }

  /**
   * Makes the rules of these crossings due, in the transaction that records the thresholds. A crossing is ignored while
   * the top-up of an earlier one is open, because that one will start a new data cycle.
   */
  async makeDue(tx: Tx, crossed: readonly CrossedThreshold[]): Promise<void> {
    if (crossed.length === 0) return;
    await sql(
      tx.manager,
      `UPDATE esim_auto_topups a SET due_at = now()
       FROM unnest($1::text[], $2::int[]) AS c (esim_id, percent)
       WHERE a.esim_id = c.esim_id AND a.at_percent <= c.percent AND a.due_at IS NULL
         AND NOT EXISTS (SELECT FROM topups t WHERE t.esim_id = a.esim_id AND t.auto_topup_id IS NOT NULL
                           AND t.status IN ('pending', 'processing'))`,
      [crossed.map(({ esimId }) => esimId), crossed.map(({ percent }) => percent)],
    );
  }

  /** The eSIMs of due rules, oldest first; none while a restored database is being repaired (D54). */
  async listDue(mode: Mode, limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ esim_id: string }>(
      this.manager,
      `SELECT esim_id FROM esim_auto_topups
       WHERE mode = $1 AND due_at <= now()
         AND NOT EXISTS (SELECT FROM restore_epochs WHERE completed_at IS NULL)
       ORDER BY due_at LIMIT $2`,
      [mode, limit],
    );
    return rows.map((row) => row.esim_id);
  }

  /** Ends the crossing: with a top-up, or without one because of `failure`. */
  async end(tx: Tx, esimId: string, failure: ErrorCode | null): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE esim_auto_topups
       SET due_at = NULL, last_failure_code = $2::text, last_failed_at = CASE WHEN $2::text IS NOT NULL THEN now() END
       WHERE esim_id = $1`,
      [esimId, failure],
    );
  }

  /** Keeps the crossing for another try. */
  async postpone(esimId: string, delayMs: number, manager: EntityManager = this.manager): Promise<void> {
    await sql(
      manager,
      `UPDATE esim_auto_topups SET due_at = now() + $2 * interval '1 millisecond'
       WHERE esim_id = $1 AND due_at IS NOT NULL`,
      [esimId, delayMs],
    );
  }
}
