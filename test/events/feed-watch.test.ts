import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { EventFeed } from '../../src/events/event-feed.js';
import type { EventsRepository } from '../../src/events/events.repository.js';
import { FeedWatch, type FeedWait, type WaitEnd } from '../../src/events/feed-watch.js';

/** Watches a feed with this head and a partner's events at these positions. */
function watchFeed(state: { head: number; readonly events: readonly number[] }): FeedWatch {
  const feed = { head: () => Promise.resolve(state.head) };
  const withNewEvents = (_mode: string, awaited: unknown[], after: number, to: number) =>
    Promise.resolve(state.events.some((at) => at > after && at <= to) ? awaited : []);
  const repository = { withNewEvents };
  return new FeedWatch(
    feed as unknown as EventFeed,
    repository as unknown as EventsRepository,
    pino({ level: 'silent' }),
  );
}

function waitAt(watch: FeedWatch, position: number, more: Partial<FeedWait> = {}): Promise<WaitEnd> {
  const scope = { partnerId: 'ptn_1', mode: 'live' } as const;
  const { signal } = new AbortController();
  return watch.wait({ scope, keyId: 'key_1', position, forMs: 60_000, gone: signal, ...more });
}

describe('a wait on the feed (D39)', () => {
  it('keeps waiting after the last day with events was dropped, instead of making callers read again', async () => {
    const watch = watchFeed({ head: 100, events: [] });
    const held = new AbortController();
    const other = waitAt(watch, 100, { gone: held.signal });
    expect(await waitAt(watch, 0, { forMs: 1 })).toBe('time');
    held.abort();
    expect(await other).toBe('gone');
  });

  it('ends for an event that other waiters had already passed when this caller arrived', async () => {
    const watch = watchFeed({ head: 100, events: [50] });
    const held = new AbortController();
    const other = waitAt(watch, 100, { gone: held.signal });
    expect(await waitAt(watch, 40)).toBe('new');
    held.abort();
    expect(await other).toBe('gone');
  });

  it('ends for an event after the drop, although its position is lower than the previous one', async () => {
    const state = { head: 0, events: [] as number[] };
    const watch = watchFeed(state);
    const waiting = waitAt(watch, 100);
    // A poll sees the lower head before the event is recorded.
    expect(await waitAt(watch, 0, { forMs: 200 })).toBe('time');
    state.events.push(10);
    state.head = 10;
    expect(await waiting).toBe('new');
  });
});
