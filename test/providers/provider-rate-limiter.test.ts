import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ProviderUnavailable } from '../../src/providers/index.js';
import {
  SendDeadlineExceeded,
  ProviderRateLimiter,
  type CallPurpose,
} from '../../src/providers/http/index.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { makeEsimAccessWorld, openTestDataSource } from './esim-access-world.js';
import { find, newOrder } from './provider-world.js';

/** undici's channel for a request whose head is being written. `request` is undici's own object. */
const LEAVES = 'undici:client:sendHeaders';

describe('the rate limit of provider calls', () => {
  let database: TestDatabase;
  let sources: DataSource[];
  beforeAll(async () => {
    database = await createTestDatabase();
    sources = [await openTestDataSource(database.url), await openTestDataSource(database.url)];
  });
  afterAll(async () => {
    for (const source of sources) await source.destroy();
    await database.drop();
  });
  afterEach(() => database.pool.query('DELETE FROM upstream_pace'));

  /** Simulates that all slots of the next `ms` milliseconds are taken. */
  function setBacklog(provider: string, ms: number) {
    return database.pool.query(
      `INSERT INTO upstream_pace VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
       ON CONFLICT (provider) DO UPDATE SET next_slot_at = excluded.next_slot_at`,
      [provider, ms],
    );
  }

  function waitFor(pace: ProviderRateLimiter, purpose: CallPurpose, deadlineMs = 10_000) {
    return waitUnder(new AbortController().signal, pace, purpose, deadlineMs);
  }

  function waitUnder(
    signal: AbortSignal,
    pace: ProviderRateLimiter,
    purpose: CallPurpose,
    withinMs = 10_000,
  ) {
    return pace.inSlot({ provider: 'w', purpose, withinMs, signal }, () => Promise.resolve());
  }

  it('holds across all processes, however often they freeze', async () => {
    const world = await makeEsimAccessWorld(sources[0]!, { requestsPerSecond: 8, timeoutMs: 10_000 });
    // Count departures. This process would time arrivals as late as its callers run.
    const departures: number[] = [];
    const note = (message: unknown): void => {
      if ((message as { request: { origin: string } }).request.origin === world.simulator.url)
        departures.push(performance.now());
    };
    subscribe(LEAVES, note);
    const stalls = setInterval(() => stallFor(Math.random() * 120), 250);
    try {
      const processes = [world.provider, world.anotherProvider(), world.anotherProvider()];
      // A caller that is refused a slot tries again, like every job.
      const caller = async (nth: number): Promise<void> => {
        while (departures.length < 24) {
          await find(processes[nth % 3]!, newOrder(world)).catch(unlessUnavailable);
        }
      };
      await Promise.all(Array.from({ length: 12 }, (_, nth) => caller(nth)));
      expect(busiestSecondOf(departures)).toBeLessThanOrEqual(8);
    } finally {
      clearInterval(stalls);
      unsubscribe(LEAVES, note);
      await world.close();
    }
  });

  it('lets a call that missed its slot use a later one, and delays the next call accordingly', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 10);
    const signal = new AbortController().signal;
    const closings: number[] = [];
    const startedAt = performance.now();
    await pace.inSlot({ provider: 'w', purpose: 'order', withinMs: 10_000, signal }, (closesAt) => {
      closings.push(closesAt);
      if (closings.length > 1) return Promise.resolve();
      // On a busy machine, a caller that is late for the first slot gets a longer one.
      const isFirst = performance.now() - startedAt < 49;
      expect(closesAt - performance.now(), 'how late it may leave').toBeLessThanOrEqual(isFirst ? 50 : 500);
      stallFor(closesAt - performance.now() + 1);
      throw new SendDeadlineExceeded();
    });
    const { rows } = await database.pool.query<{ ms: number }>(
      `SELECT (extract(epoch FROM next_slot_at - clock_timestamp()) * 1000)::float8 AS ms FROM upstream_pace`,
    );
    expect(closings).toHaveLength(2);
    // The second slot opens at least 105 ms after the first. The caller may be another 100 ms late, so the slot is
    // longer by that much.
    expect(performance.now() + rows[0]!.ms - startedAt).toBeGreaterThanOrEqual(105 + 105 + 100);
  });

  it('sends no call that is late for every slot', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 100);
    const signal = new AbortController().signal;
    let tries = 0;
    const late = pace.inSlot({ provider: 'w', purpose: 'order', withinMs: 20_000, signal }, (closesAt) => {
      tries++;
      stallFor(closesAt - performance.now() + 1);
      throw new SendDeadlineExceeded();
    });
    await expect(late).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(tries).toBeGreaterThan(0);
  });

  it('spaces slots by the rate and hands them out in order, whichever process asks', async () => {
    const paces = sources.map((source) => new ProviderRateLimiter(source.manager, 20));
    const startedAt = performance.now();
    const waits = await Promise.allSettled(
      Array.from({ length: 21 }, (_, i) => waitFor(paces[i % 2]!, 'order', 60_000)),
    );
    const refused = waits.filter((wait) => wait.status === 'rejected');
    // On a busy machine, a caller may miss all of its slots.
    for (const { reason } of refused) expect(reason).toBeInstanceOf(ProviderUnavailable);
    expect(refused.length).toBeLessThan(11);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual((20 - refused.length) * 50);
  });

  it('refuses polls behind a backlog that orders and top-ups may still join', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 100);
    await setBacklog('w', 2_400);
    const refusal = await waitFor(pace, 'poll').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ProviderUnavailable);
    expect((refusal as ProviderUnavailable).retryAfterMs).toBeGreaterThan(100);
    const startedAt = performance.now();
    await waitFor(pace, 'topup');
    await waitFor(pace, 'order');
    // The refused call took no slot, so the other two come right after the backlog.
    expect(performance.now() - startedAt).toBeLessThan(9_000);
  });

  it('lets the catalog wait until the backlog is short, and refuses it when it would wait too long', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 100);
    await setBacklog('w', 20_000);
    await expect(waitFor(pace, 'catalog', 2_000)).rejects.toBeInstanceOf(ProviderUnavailable);
    const startedAt = performance.now();
    await setBacklog('w', 600);
    await waitFor(pace, 'catalog');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(500);
  });

  it('refuses top-ups behind a backlog that orders may still join', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 100);
    await setBacklog('w', 4_900);
    await expect(waitFor(pace, 'topup')).rejects.toBeInstanceOf(ProviderUnavailable);
    const signal = AbortSignal.abort();
    // The limiter accepts the order. The call fails only because its signal is already aborted.
    await expect(waitUnder(signal, pace, 'order')).rejects.toBeInstanceOf(ProviderUnavailable);
    await setBacklog('w', 20_000);
    await expect(waitFor(pace, 'order')).rejects.toMatchObject({ name: 'ProviderUnavailable' });
  });

  it('refuses at once a call that would miss its deadline', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 100);
    await setBacklog('w', 4_900);
    const startedAt = performance.now();
    await expect(waitFor(pace, 'order', 2_400)).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(performance.now() - startedAt).toBeLessThan(2_400);
  });

  it('stops waiting when the caller aborts', async () => {
    const pace = new ProviderRateLimiter(sources[0]!.manager, 100);
    await setBacklog('w', 4_000);
    const startedAt = performance.now();
    const waiting = waitUnder(AbortSignal.timeout(100), pace, 'order');
    await expect(waiting).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(performance.now() - startedAt).toBeLessThan(3_500);
  });
});

function unlessUnavailable(error: unknown): null {
  if (error instanceof ProviderUnavailable) return null;
  throw error;
}

/** Blocks this thread, including timers and sockets. */
function stallFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.max(0, ms));
}

/** The maximum count within any one second that starts with one of the times. */
function busiestSecondOf(times: readonly number[]): number {
  const within = (start: number): number => times.filter((at) => at >= start && at < start + 1_000).length;
  return Math.max(...times.map(within));
}
