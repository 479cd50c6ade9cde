import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ProviderUnavailable } from '../../src/providers/index.js';
import { UpstreamPace, type UpstreamPurpose } from '../../src/providers/upstream/index.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { makeEsimAccessWorld, openTestDataSource } from './esim-access-world.js';
import { find, newOrder } from './wholesaler-world.js';

describe('the pace of calls to a wholesaler', () => {
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

  /** Sets how far granted slots reach into the future. */
  function setBacklog(provider: string, ms: number) {
    return database.pool.query(
      `INSERT INTO upstream_pace VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
       ON CONFLICT (provider) DO UPDATE SET next_slot_at = excluded.next_slot_at`,
      [provider, ms],
    );
  }

  function waitFor(pace: UpstreamPace, purpose: UpstreamPurpose, deadlineMs = 10_000) {
    return pace.waitForSlot('w', purpose, deadlineMs, new AbortController().signal);
  }

  it('holds the limit over all processes together, as the wholesaler counts', async () => {
    const world = await makeEsimAccessWorld(sources[0]!, { requestsPerSecond: 8 });
    try {
      const processes = [world.provider, world.anotherProvider(), world.anotherProvider()];
      // Connections are made first: a call that has to connect arrives later than it left.
      for (const each of processes) expect(await find(each, newOrder(world))).toBeNull();
      await Promise.all(
        Array.from({ length: 18 }, (_, i) =>
          find(processes[i % 3]!, newOrder(world)).catch(unlessUnavailable),
        ),
      );
      const { calls, busiestSecond } = world.simulator.state();
      expect(calls['esim/query']).toBeGreaterThan(16);
      expect(busiestSecond).toBeLessThanOrEqual(8);
    } finally {
      await world.close();
    }
  });

  it('gives slots apart by the rate, to one after the other, whichever process asks', async () => {
    const paces = sources.map((source) => new UpstreamPace(source.manager, 20));
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 21 }, (_, i) => waitFor(paces[i % 2]!, 'order')));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_000);
  });

  it('refuses polls and the catalogue behind a backlog that orders and top-ups still join', async () => {
    const pace = new UpstreamPace(sources[0]!.manager, 100);
    await setBacklog('w', 600);
    for (const purpose of ['poll', 'catalog'] as const) {
      const refusal = await waitFor(pace, purpose).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(ProviderUnavailable);
      expect((refusal as ProviderUnavailable).retryAfterMs).toBeGreaterThan(100);
    }
    const startedAt = performance.now();
    await waitFor(pace, 'topup');
    await waitFor(pace, 'order');
    // The refused ones took no slot: the two stand right behind the backlog.
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });

  it('refuses top-ups behind a backlog that orders still join', async () => {
    const pace = new UpstreamPace(sources[0]!.manager, 100);
    await setBacklog('w', 3_000);
    await expect(waitFor(pace, 'topup')).rejects.toBeInstanceOf(ProviderUnavailable);
    const signal = AbortSignal.abort();
    // It is given a slot, and only its own impatience ends it.
    await expect(pace.waitForSlot('w', 'order', 10_000, signal)).rejects.toBeInstanceOf(ProviderUnavailable);
    await setBacklog('w', 6_000);
    await expect(waitFor(pace, 'order')).rejects.toMatchObject({ name: 'ProviderUnavailable' });
  });

  it('refuses at once what would come after the deadline', async () => {
    const pace = new UpstreamPace(sources[0]!.manager, 100);
    await setBacklog('w', 2_000);
    const startedAt = performance.now();
    await expect(waitFor(pace, 'order', 500)).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });

  it('stops waiting when the caller does', async () => {
    const pace = new UpstreamPace(sources[0]!.manager, 100);
    await setBacklog('w', 4_000);
    const startedAt = performance.now();
    const waiting = pace.waitForSlot('w', 'order', 10_000, AbortSignal.timeout(100));
    await expect(waiting).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});

function unlessUnavailable(error: unknown): null {
  if (error instanceof ProviderUnavailable) return null;
  throw error;
}
