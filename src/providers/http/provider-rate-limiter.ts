import { setTimeout as delay } from 'node:timers/promises';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';
import { ProviderUnavailable } from '../esim-provider.js';
import { isPastDeadline, SendDeadlineExceeded } from '../call-provider.js';

/** Purpose of a call; it determines the maximum backlog that the call may join. */
export type CallPurpose = 'order' | 'topup' | 'poll' | 'catalog' | 'probe';

/**
 * Maximum backlog that each purpose may join, in milliseconds. Polls and the catalog fill at most 250 ms of it, so an
 * order waits behind at most that much of them. Top-ups stop while orders may still continue. The catalog waits until
 * the backlog is short enough; the other purposes are refused.
 */
const MAX_BACKLOG_MS: Readonly<Record<CallPurpose, number>> = {
  order: 5_000,
  topup: 2_500,
  probe: 1_000,
  poll: 250,
  catalog: 250,
};

/**
 * A call may start this long after its slot (slow database, busy process) without exceeding the limit, because the
 * slots of one second are spread over that much more time.
 */
const TOLERATED_LATENESS_MS = 50;
/**
 * A call that missed its slot takes another one with a larger tolerance. That slot is longer by the same amount, so the
 * limit still holds. A process that is repeatedly late still gets through.
 */
const LATENESS_OF_SLOTS_MS = [TOLERATED_LATENESS_MS, 150, 500] as const;
const RETRY_MISSED_MS = 1_000;
const SLOWER_BY = 2;
const MAX_SLOWER_BY = 8;
const NEXT_SLOWING_MS = 1_000;
const SLOWER_FOR_MS = 60_000;
/** Retry delay for a caller when the database cannot grant a slot. */
const RETRY_WITHOUT_DATABASE_MS = 1_000;

export interface RateLimitedCall {
  readonly provider: string;
  readonly purpose: CallPurpose;
  /** Maximum wait for a slot. */
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

/** Times of `performance.now()` between which a call may be sent. */
interface Slot {
  readonly opensAt: number;
  readonly closesAt: number;
}

interface SlotRow {
  /** Milliseconds of the Unix epoch; null when no slot was taken. */
  slot_ms: number | null;
  now_ms: number;
  backlog_ms: number | null;
}

/**
 * Permits at most `requestsPerSecond` calls per second to one provider across all processes, counted when they are
 * sent. It is a GCRA row per provider in PostgreSQL on the database's clock (D40). The table is UNLOGGED: a database
 * crash forgets one backlog.
 */
export class ProviderRateLimiter {
  private readonly slotMs: number;
  private readonly databaseClock = new DatabaseClock();
  private slowerBy = 1;
  private refusedAt = -Infinity;

  constructor(
    private readonly manager: EntityManager,
    requestsPerSecond: number,
  ) {
    this.slotMs = (1_000 + TOLERATED_LATENESS_MS) / requestsPerSecond;
  }

  /**
   * Waits for the next free slot and lets `send` begin the call in it. If `send` throws `SendDeadlineExceeded` because
   * the slot has closed, the call waits for another slot.
   * @throws ProviderUnavailable, with nothing sent, when the slot lies beyond the purpose's maximum backlog or
   * `withinMs`, when `signal` aborts, or when the process is late for every slot
   */
  async inSlot<T>(call: RateLimitedCall, send: (closesAt: number) => Promise<T>): Promise<T> {
    const givesUpAt = performance.now() + call.withinMs;
    for (const latenessMs of LATENESS_OF_SLOTS_MS) {
      const slot = await this.takeSlot(call, latenessMs, givesUpAt - performance.now());
      await waitUnlessAborted(slot.opensAt - performance.now(), call.signal);
      if (isPastDeadline(slot.closesAt)) continue;
      try {
        return await send(slot.closesAt);
      } catch (error) {
        // If the slot is still open, the call's own deadline has passed.
        if (!(error instanceof SendDeadlineExceeded) || !isPastDeadline(slot.closesAt)) throw error;
      }
    }
    throw new ProviderUnavailable(RETRY_MISSED_MS);
  }

  /**
   * Slows down after the provider has refused a call for its rate: its limit is lower than ours, or others use our key.
   * At the same rate, each lookup of a large order would be refused halfway, and the order would never end. Doubles
   * this process's slot length, at most once per second and up to eight times. A minute without a refusal ends it.
   */
  slowDown(): void {
    const nowMs = performance.now();
    // Calls that were in flight at the first refusal say nothing about the rate after it.
    if (nowMs - this.refusedAt < NEXT_SLOWING_MS) return;
    this.slowerBy = Math.min(MAX_SLOWER_BY, this.slowerNow(nowMs) * SLOWER_BY);
    this.refusedAt = nowMs;
  }

  private slowerNow(nowMs: number): number {
    return nowMs - this.refusedAt < SLOWER_FOR_MS ? this.slowerBy : 1;
  }

  private async takeSlot(call: RateLimitedCall, latenessMs: number, leftMs: number): Promise<Slot> {
    const askedAt = performance.now();
    const extraMs = latenessMs - TOLERATED_LATENESS_MS;
    const lengthMs = this.slotMs * this.slowerNow(askedAt) + extraMs;
    // A call that missed a slot was already admitted, and longer slots are not a backlog caused by others.
    const longestMs = extraMs > 0 ? leftMs : Math.min(MAX_BACKLOG_MS[call.purpose], leftMs);
    const row = await this.upsert(call.provider, lengthMs, longestMs).catch((error: unknown) => {
      throw new ProviderUnavailable(RETRY_WITHOUT_DATABASE_MS, error);
    });
    this.databaseClock.observe(askedAt, row.now_ms);
    if (row.slot_ms === null) {
      const tooLongMs = Math.max(this.slotMs, (row.backlog_ms ?? 0) - longestMs);
      if (call.purpose !== 'catalog' || tooLongMs >= leftMs) throw new ProviderUnavailable(tooLongMs);
      // Reading the catalog takes many calls, and one refused call would lose them all.
      await waitUnlessAborted(tooLongMs, call.signal);
      return this.takeSlot(call, latenessMs, leftMs - (performance.now() - askedAt));
    }
    return {
      opensAt: this.databaseClock.latestLocal(row.slot_ms),
      closesAt: this.databaseClock.earliestLocal(row.slot_ms) + latenessMs,
    };
  }

  /** One statement; `slot_ms` is null when the backlog exceeds `longestMs`, and then no slot was taken. */
  private async upsert(provider: string, lengthMs: number, longestMs: number): Promise<SlotRow> {
    const { rows } = await sql<SlotRow>(
      this.manager,
      `WITH granted AS (
         INSERT INTO upstream_pace AS pace (provider, next_slot_at)
         VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond')
         ON CONFLICT (provider) DO UPDATE
           SET next_slot_at = greatest(pace.next_slot_at, clock_timestamp()) + $2 * interval '1 millisecond'
           WHERE pace.next_slot_at <= clock_timestamp() + $3 * interval '1 millisecond'
         RETURNING next_slot_at - $2 * interval '1 millisecond' AS slot_at
       )
       SELECT (SELECT extract(epoch FROM slot_at) * 1000 FROM granted)::float8 AS slot_ms,
              (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms,
              (SELECT extract(epoch FROM next_slot_at - clock_timestamp()) * 1000
               FROM upstream_pace WHERE provider = $1)::float8 AS backlog_ms`,
      [provider, lengthMs, longestMs],
    );
    return rows[0]!;
  }
}

async function waitUnlessAborted(waitMs: number, signal: AbortSignal): Promise<void> {
  if (waitMs <= 0) return;
  try {
    // A timer ignores fractions of a millisecond, and counts the millisecond in which it began as a whole one.
    await delay(Math.ceil(waitMs) + 1, undefined, { signal });
  } catch (error) {
    throw new ProviderUnavailable(waitMs, error);
  }
}

const FORGET_AFTER_MS = 60_000;

/** Offset between local and database time: between `least` and `most` milliseconds, whatever the network delay. */
interface OffsetRange {
  readonly least: number;
  readonly most: number;
}

const UNKNOWN: OffsetRange = { least: -Infinity, most: Infinity };

/**
 * The database's clock as this process sees it. The database reads its clock between the query and the response, so
 * each exchange bounds the offset on both sides. The narrowest bounds of the last minutes are the most accurate.
 */
class DatabaseClock {
  private offset = UNKNOWN;
  /** Replaces an old `offset`, because clocks drift. */
  private nextOffset = UNKNOWN;
  private renewAt = 0;

  /**
   * @param askedAt `performance.now()` before the query was sent
   * @param databaseMs the database's time in the response that has just arrived
   */
  observe(askedAt: number, databaseMs: number): void {
    const now = performance.now();
    if (now >= this.renewAt) {
      this.offset = this.nextOffset;
      this.nextOffset = UNKNOWN;
      this.renewAt = now + FORGET_AFTER_MS;
    }
    const seen = { least: askedAt - databaseMs, most: now - databaseMs };
    this.nextOffset = intersection(this.nextOffset, seen);
    this.offset = intersection(this.offset, this.nextOffset);
  }

  /** The earliest `performance.now()` at which the database's clock has certainly reached this time. */
  latestLocal(databaseMs: number): number {
    return databaseMs + this.offset.most;
  }

  /** The latest `performance.now()` before which the database's clock has certainly not reached this time. */
  earliestLocal(databaseMs: number): number {
    // After the database clock is set, the bounds contradict each other until the old ones expire.
    return databaseMs + Math.min(this.offset.least, this.offset.most);
  }
}

function intersection(a: OffsetRange, b: OffsetRange): OffsetRange {
  return { least: Math.max(a.least, b.least), most: Math.min(a.most, b.most) };
}
