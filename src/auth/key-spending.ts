import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { AppError } from '../common/errors/index.js';
import type { Money } from '../common/money.js';
import { prepared, sql, toSafeInteger, type Tx } from '../infra/database/index.js';

/** The part of a limited key's purchase that is released or refunded. */
export interface ReturnedSpending {
  readonly keyId: string;
  /** When the purchase was accepted. */
  readonly boughtAt: Date;
  readonly amount: number;
}

/** A key's spend limit, and the part of it that is left today. */
export interface RemainingLimit {
  readonly amount: Money;
  readonly remaining: Money;
}

/** The UTC day of the transaction, and so of `created_at` of what it buys. */
const TODAY = `(now() AT TIME ZONE 'UTC')::date`;

/** A rotated key continues the spending of the first key of its chain. */
const LIMIT = `
  SELECT coalesce(first_key_id, id) AS first_key_id, spend_limit_amount AS amount, spend_limit_currency AS currency
  FROM api_keys WHERE id = $1`;

const SPEND = prepared(`
  WITH key_limit AS (${LIMIT}), spent AS (
    INSERT INTO key_spending AS s (first_key_id, day, amount)
    SELECT first_key_id, ${TODAY}, $2::bigint FROM key_limit WHERE currency = $3 AND $2::bigint <= amount
    ON CONFLICT (first_key_id, day) DO UPDATE SET amount = s.amount + EXCLUDED.amount
    WHERE s.amount + EXCLUDED.amount <= (SELECT amount FROM key_limit)
    RETURNING 1
  )
  SELECT currency, EXISTS (SELECT 1 FROM spent) AS is_within FROM key_limit`);

/** Locks the rows in one order, so that transactions that return the spending of several keys cannot deadlock. */
const GIVE_BACK = prepared(`
  WITH back AS (
    SELECT coalesce(k.first_key_id, k.id) AS first_key_id, (r.bought_at AT TIME ZONE 'UTC')::date AS day,
           sum(r.amount)::bigint AS amount
    FROM unnest($1::text[], $2::timestamptz[], $3::bigint[]) AS r (key_id, bought_at, amount)
    JOIN api_keys k ON k.id = r.key_id GROUP BY 1, 2
  ), locked AS (
    SELECT s.first_key_id, s.day, b.amount FROM key_spending s JOIN back b USING (first_key_id, day)
    ORDER BY s.first_key_id, s.day FOR NO KEY UPDATE OF s
  )
  UPDATE key_spending s SET amount = s.amount - l.amount
  FROM locked l WHERE s.first_key_id = l.first_key_id AND s.day = l.day`);

/**
 * Sums the purchases of limited keys per UTC day, Live and Sandbox alike (D62). A purchase counts when it is accepted,
 * without the part that is released or refunded later.
 */
@Injectable()
export class KeySpending {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Adds a purchase to the key's spending of the day. The condition is part of the write, so parallel purchases never
   * exceed the limit together. @throws AppError `spend_limit_reached`
   */
  async spend(tx: Tx, keyId: string, { amount, currency }: Money): Promise<void> {
    const { rows } = await sql<{ currency: string; is_within: boolean }>(tx.manager, SPEND, [
      keyId,
      amount,
      currency,
    ]);
    const [limit] = rows;
    if (limit?.is_within) return;
    if (!limit || limit.currency === currency) throw new AppError('spend_limit_reached');
    throw new AppError('spend_limit_reached', {
      detail: `The price is in ${currency}, and the spend limit of this key is in ${limit.currency}. Use a key whose limit is in ${currency}, or a key without a limit.`,
    });
  }

  /** Subtracts returned amounts from the days on which they were spent, whose rows may be purged. */
  async giveBack(tx: Tx, returned: readonly ReturnedSpending[]): Promise<void> {
    if (returned.length === 0) return;
    await sql(tx.manager, GIVE_BACK, [
      returned.map(({ keyId }) => keyId),
      returned.map(({ boughtAt }) => boughtAt),
      returned.map(({ amount }) => amount),
    ]);
  }

  /** @throws Error for a key without a spend limit */
  async remainingOf(keyId: string): Promise<RemainingLimit> {
    const { rows } = await sql<{ amount: string; currency: string; spent: string }>(
      this.manager,
      `SELECT l.amount, l.currency, coalesce(s.amount, 0) AS spent FROM (${LIMIT}) AS l
       LEFT JOIN key_spending s ON s.first_key_id = l.first_key_id AND s.day = ${TODAY}`,
      [keyId],
    );
    const [row] = rows;
    if (!row) throw new Error('the key has no spend limit');
    const { currency } = row;
    const amount = toSafeInteger(row.amount);
    return {
      amount: { amount, currency },
      remaining: { amount: amount - toSafeInteger(row.spent), currency },
    };
  }

  /** Deletes up to `limit` rows of days before yesterday, and returns their number. */
  async purge(limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM key_spending WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM key_spending WHERE day < ${TODAY} - 1 LIMIT $1 FOR UPDATE SKIP LOCKED))`,
      [limit],
    );
    return affected;
  }
}
