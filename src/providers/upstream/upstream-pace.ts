import { setTimeout as delay } from 'node:timers/promises';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';
import { ProviderUnavailable } from '../esim-provider.js';
import { DatabaseClock } from './database-clock.js';

/** What a call is for; it decides how long a queue of granted slots it may join. */
export type UpstreamPurpose = 'order' | 'topup' | 'poll' | 'catalog' | 'probe';

/**
 * The longest backlog that a purpose may join. Polls and the catalogue fill at most 250 ms of it, so an order waits
 * behind at most that much of them; top-ups stop where orders may still go on.
 */
const LONGEST_BACKLOG_MS: Readonly<Record<UpstreamPurpose, number>> = {
  order: 5_000,
  topup: 2_500,
  probe: 1_000,
  poll: 250,
  catalog: 250,
};

/**
 * A call may leave this late after its slot (a slow answer of the database, a busy process) and the limit still holds:
 * the slots of one second are spread over that much more. One that would leave later takes another slot.
 */
const TOLERATED_LATENESS_MS = 50;
/** A process that is late again and again must get through at last. */
const MAX_SLOTS = 4;
/** Told to a caller when the database cannot be asked for a slot. */
const RETRY_WITHOUT_DATABASE_MS = 1_000;

interface SlotRow {
  /** Milliseconds of the Unix epoch; null when no slot was taken. */
  slot_ms: number | null;
  now_ms: number;
  backlog_ms: number | null;
}

/**
 * At most `requestsPerSecond` calls a second to one provider, over all processes: a GCRA row per provider in
 * PostgreSQL, on the database's clock (D40). The table is UNLOGGED; a crash of the database forgets one backlog.
 */
export class UpstreamPace {
  private readonly slotMs: number;
  private readonly databaseClock = new DatabaseClock();

  constructor(
    private readonly manager: EntityManager,
    requestsPerSecond: number,
  ) {
    this.slotMs = (1_000 + TOLERATED_LATENESS_MS) / requestsPerSecond;
  }

  /**
   * Takes the next free slot and waits for it.
   * @throws ProviderUnavailable when it lies behind the purpose's backlog or `deadlineMs`, or `signal` aborts.
   */
  async waitForSlot(
    provider: string,
    purpose: UpstreamPurpose,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const givesUpAt = performance.now() + deadlineMs;
    for (let slots = 1; slots <= MAX_SLOTS; slots++) {
      const longestMs = Math.min(LONGEST_BACKLOG_MS[purpose], givesUpAt - performance.now());
      const slotAt = await this.takeSlot(provider, longestMs);
      await waitUnlessAborted(slotAt - performance.now(), signal);
      if (performance.now() - slotAt <= TOLERATED_LATENESS_MS) return;
    }
  }

  /** When the slot is, by `performance.now()`. */
  private async takeSlot(provider: string, longestMs: number): Promise<number> {
    const row = await this.upsert(provider, longestMs).catch((error: unknown) => {
      throw new ProviderUnavailable(RETRY_WITHOUT_DATABASE_MS, error);
    });
    this.databaseClock.observe(row.now_ms);
    if (row.slot_ms === null) {
      throw new ProviderUnavailable(Math.max(this.slotMs, (row.backlog_ms ?? 0) - longestMs));
    }
    return this.databaseClock.toLocal(row.slot_ms);
  }

  /** One statement; `slot_ms` is null when the backlog is longer than `longestMs`, and then no slot was taken. */
  private async upsert(provider: string, longestMs: number): Promise<SlotRow> {
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
      [provider, this.slotMs, longestMs],
    );
    return rows[0]!;
  }
}

async function waitUnlessAborted(waitMs: number, signal: AbortSignal): Promise<void> {
  if (waitMs <= 0) return;
  try {
    await delay(waitMs, undefined, { signal });
  } catch (error) {
    throw new ProviderUnavailable(waitMs, error);
  }
}
