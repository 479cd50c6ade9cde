import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql, type Tx } from '../infra/database/index.js';
import type { KnownEsim, ProviderEsimRef } from '../providers/index.js';

/** The right to write one eSIM's reading: void when the lease has lapsed and another worker took it. */
export interface EsimPoll extends ProviderEsimRef {
  readonly esimId: string;
  readonly fence: number;
}

/** eSIMs of one provider that are read together. */
export interface PollBatch {
  readonly provider: string;
  readonly source: 'callback' | 'poll';
  /** Time of the claim, and therefore of the query, by the database's clock. */
  readonly askedAt: Date;
  readonly polls: readonly EsimPoll[];
}

export interface PollClaim {
  readonly provider: string;
  readonly limit: number;
  /** Time limit for the reading; the lease lasts longer. */
  readonly timeoutMs: number;
}

interface ClaimedRow {
  readonly id: string;
  readonly provider_esim_id: string;
  readonly iccid: string;
  readonly created_at: Date;
  readonly poll_fence: string;
  readonly polled_at: Date;
  /** Time of the poll before this claim. */
  readonly polled_before: Date | null;
  readonly read_at: Date | null;
  readonly activated_at: Date | null;
  readonly expires_at: Date | null;
  readonly topped_up_at: Date | null;
  readonly used_bytes: string;
  readonly total_bytes: string | null;
}

const CAN_CHANGE = `status IN ('issued', 'active', 'depleted', 'suspended')`;
const IS_FREE = `(poll_lease_until IS NULL OR poll_lease_until <= now())`;
/** Neighbors by issue time are searched among this many batches of the longest-due eSIMs. */
const CANDIDATE_BATCHES = 10;

/** Order in which eSIMs are claimed. The rest of the batch are neighbors of the first one by issue time. */
const DUE = {
  callback: `poll_hint_at <= now()`,
  poll: `next_poll_at <= now() AND poll_hint_at IS NULL`,
} as const;
const ORDER = { callback: 'poll_hint_at', poll: 'next_poll_at' } as const;

/** SQL of due polls. Due times and leases use the database's clock (D40). */
@Injectable()
export class EsimPollsRepository {
  private readonly leaseMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'leaseMs'>,
  ) {
    this.leaseMs = config.leaseMs;
  }

  /**
   * Leases up to `limit` due eSIMs: the longest due one, and those issued next to it, which a provider may return in
   * one page. Null when no unleased eSIM is due. If a worker dies, its eSIMs stay due.
   */
  async claim(
    source: PollBatch['source'],
    { provider, limit, timeoutMs }: PollClaim,
  ): Promise<PollBatch | null> {
    const { rows } = await sql<ClaimedRow>(
      this.manager,
      `WITH candidates AS MATERIALIZED (
         SELECT id, created_at, row_number() OVER (ORDER BY ${ORDER[source]}, id) AS place
         FROM esims
         WHERE provider = $1 AND next_poll_at IS NOT NULL AND ${CAN_CHANGE} AND ${DUE[source]} AND ${IS_FREE}
         ORDER BY ${ORDER[source]}, id LIMIT $2 * ${CANDIDATE_BATCHES}
       ), chosen AS (
         SELECT id FROM candidates
         ORDER BY abs(extract(epoch FROM created_at - (SELECT created_at FROM candidates WHERE place = 1))), id
         LIMIT $2
       ), free AS (
         SELECT e.id, e.polled_at AS polled_before FROM esims e JOIN chosen USING (id)
         WHERE ${DUE[source]} AND ${IS_FREE}
         ORDER BY e.id FOR UPDATE OF e SKIP LOCKED
       )
       UPDATE esims e
       SET polled_at = now(), poll_hint_at = NULL, next_poll_at = least(e.next_poll_at, now()),
           poll_lease_until = now() + $3 * interval '1 millisecond', poll_fence = e.poll_fence + 1
       FROM free WHERE e.id = free.id
       RETURNING e.id, e.provider_esim_id, e.iccid, e.created_at, e.poll_fence, e.polled_at, free.polled_before,
                 e.read_at, e.activated_at, e.expires_at, e.topped_up_at, e.used_bytes, e.total_bytes`,
      [provider, limit, timeoutMs + this.leaseMs],
    );
    const [first] = rows;
    return first ? { provider, source, askedAt: first.polled_at, polls: rows.map(toPoll) } : null;
  }

  /** Locks the eSIMs' rows in id order, and returns the ids of those whose lease is still ours. */
  async holdForUpdate(tx: Tx, polls: readonly EsimPoll[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `SELECT e.id FROM esims e JOIN unnest($1::text[], $2::bigint[]) AS p (id, fence) ON e.id = p.id
       WHERE e.poll_fence = p.fence ORDER BY e.id FOR UPDATE OF e`,
      [polls.map((poll) => poll.esimId), polls.map((poll) => poll.fence)],
    );
    return new Set(rows.map((row) => row.id));
  }

  /** eSIMs whose orders are being canceled: the cancellation itself records and refunds them. */
  async listInCancellation(tx: Tx, esimIds: readonly string[]): Promise<ReadonlySet<string>> {
    if (esimIds.length === 0) return new Set();
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `SELECT e.id FROM esims e JOIN orders o ON o.id = e.order_id
       WHERE e.id = ANY($1::text[]) AND o.status = 'canceling' ORDER BY o.id FOR SHARE OF o`,
      [esimIds],
    );
    return new Set(rows.map((row) => row.id));
  }

  /** Releases eSIMs, each to be polled after its delay; null for never again. Void leases change nothing. */
  async schedule(
    tx: Tx,
    next: readonly { readonly poll: EsimPoll; readonly delayMs: number | null }[],
  ): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE esims e SET next_poll_at = now() + p.delay * interval '1 millisecond', poll_lease_until = NULL
       FROM unnest($1::text[], $2::bigint[], $3::float8[]) AS p (id, fence, delay)
       WHERE e.id = p.id AND e.poll_fence = p.fence`,
      [
        next.map(({ poll }) => poll.esimId),
        next.map(({ poll }) => poll.fence),
        next.map((one) => one.delayMs),
      ],
    );
  }

  /**
   * Releases an unread batch unchanged, to be polled after `delayMs`: a hint stays a hint, and no failed lookup is
   * recorded, because none took place.
   */
  async giveBack({ polls, source }: PollBatch, delayMs: number): Promise<void> {
    const column = source === 'callback' ? 'poll_hint_at' : 'next_poll_at';
    await sql(
      this.manager,
      `UPDATE esims e SET ${column} = now() + $3 * interval '1 millisecond', poll_lease_until = NULL,
         polled_at = e.read_at
       FROM (SELECT * FROM unnest($1::text[], $2::bigint[]) AS p (id, fence) ORDER BY id COLLATE "C") AS p
       WHERE e.id = p.id AND e.poll_fence = p.fence`,
      [polls.map((poll) => poll.esimId), polls.map((poll) => poll.fence), delayMs],
    );
  }

  /**
   * Requests polls of eSIMs that can still change; unknown ones are ignored. However many hints arrive, an eSIM is not
   * polled again within `cooldownMs` of its last poll. Returns the number of newly requested polls.
   */
  async hint(
    tx: Tx,
    provider: string,
    providerEsimIds: readonly string[],
    cooldownMs: number,
  ): Promise<number> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE esims e SET poll_hint_at = greatest(now(), e.polled_at + $3 * interval '1 millisecond')
       FROM (SELECT id FROM esims
             WHERE provider = $1 AND provider_esim_id = ANY($2::text[]) AND poll_hint_at IS NULL
               AND next_poll_at IS NOT NULL AND ${CAN_CHANGE}
             ORDER BY id FOR UPDATE) AS hinted
       WHERE e.id = hinted.id`,
      [provider, providerEsimIds, cooldownMs],
    );
    return affected;
  }
}

function toPoll(row: ClaimedRow): EsimPoll {
  return {
    esimId: row.id,
    fence: Number(row.poll_fence),
    providerEsimId: row.provider_esim_id,
    iccid: row.iccid,
    issuedAt: row.created_at,
    known: toKnown(row),
  };
}

function toKnown(row: ClaimedRow): KnownEsim {
  const { polled_before: polledBefore, read_at: readAt } = row;
  const wasInVain = polledBefore !== null && (readAt === null || polledBefore > readAt);
  return {
    activatedAt: row.activated_at,
    expiresAt: row.expires_at,
    toppedUpAt: row.topped_up_at,
    usedBytes: Number(row.used_bytes),
    totalBytes: row.total_bytes === null ? null : Number(row.total_bytes),
    lookedInVainAt: wasInVain ? polledBefore : null,
  };
}
