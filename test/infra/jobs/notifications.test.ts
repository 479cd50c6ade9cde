import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type SignalChannel, WorkSignals } from '../../../src/infra/jobs/index.js';
import { eventually } from '../../harness/eventually.js';

const SEND_TAKES_MS = 50;
const logger = pino({ level: 'silent' });
const QUEUE = 'test-jobs';

/**
 * An in-memory message server that all processes share. `refuse` returns the error for a message, or null to accept it.
 */
class MemoryServer {
  readonly said: string[] = [];
  private readonly listeners: ((text: string) => void)[] = [];
  refuse: (text: string) => Error | null = () => null;

  channel(): SignalChannel {
    return {
      send: async (text) => {
        await new Promise((resolve) => setTimeout(resolve, SEND_TAKES_MS));
        const refused = this.refuse(text);
        if (refused) throw refused;
        this.said.push(text);
        for (const heard of this.listeners) heard(text);
      },
      listen: (heard) => void this.listeners.push(heard),
      close: () => Promise.resolve(),
    };
  }

  get groups(): string[] {
    return this.said.flatMap(
      (text) => (JSON.parse(text) as { due?: Record<string, string[]> }).due?.[QUEUE] ?? [],
    );
  }
}

/** A process with a worker that has `slots` free slots. */
function startWorker(server: MemoryServer, slots = Infinity) {
  const now: string[] = [];
  const later: string[] = [];
  const signals = new WorkSignals(server.channel(), logger);
  const detach = signals.attach(QUEUE, {
    claimNow: (group) => slots > 0 && (now.push(group), true),
    claimWithin: (group) => void later.push(group),
    reserve: () => null,
    load: () => now.length,
  });
  return { signals, now, later, detach };
}

let server: MemoryServer;
let signals: WorkSignals;

beforeEach(() => {
  // A stop waits at most a second, which a busy machine may need to wake up, so the clock is frozen.
  vi.useFakeTimers({ toFake: ['performance'] });
  server = new MemoryServer();
  signals = new WorkSignals(server.channel(), logger);
});
afterEach(() => vi.useRealTimers());

describe('a notifier of workers in other processes', () => {
  it('sends all notifications when more are requested while one is about to be sent', async () => {
    const asked = ['a', 'b', 'c'];
    for (const group of asked) signals.tell(QUEUE, group);
    await signals.settle();
    expect(server.groups.toSorted()).toEqual(asked);
    expect(server.said).toHaveLength(1);
  });

  it('combines notifications while one is in progress, each group once', async () => {
    signals.tell(QUEUE, 'first');
    await eventually('it has left', () => server.said.length === 1);
    signals.tell(QUEUE, 'second');
    await new Promise((resolve) => setTimeout(resolve, SEND_TAKES_MS / 2));
    for (const group of ['a', 'b', 'a', 'b', 'a']) signals.tell(QUEUE, group);
    await signals.settle();
    expect(server.groups).toEqual(['first', 'second', 'a', 'b']);
    expect(server.said).toHaveLength(3);
  });

  it('splits notifications into payloads that NOTIFY accepts', async () => {
    const groups = Array.from({ length: 1_000 }, (_, nth) => `ptn_${String(nth).padStart(26, '0')}:sandbox`);
    for (const group of groups) signals.tell(QUEUE, group);
    await eventually('all have left', () => server.groups.length === groups.length);
    expect(server.groups).toEqual(groups);
    expect(Math.max(...server.said.map((text) => Buffer.byteLength(text)))).toBeLessThan(8_000);
  });

  it('skips only the notification that the server rejects (D43)', async () => {
    // PostgreSQL's error for U+0000 in a text.
    const error = Object.assign(new Error('invalid byte sequence'), { code: '22021' });
    server.refuse = (text) => (text.includes('\\u0000') ? error : null);
    for (const group of ['a', 'b\0', 'c', 'd']) signals.tell(QUEUE, group);
    await eventually('the others have left', () => server.groups.length === 3);
    expect(server.groups.toSorted()).toEqual(['a', 'c', 'd']);
  });

  it('has sent all notifications, including last-moment ones, once a stop has settled them', async () => {
    signals.tell(QUEUE, 'first');
    await signals.settle();
    expect(server.groups).toEqual(['first']);
    signals.tell(QUEUE, 'second');
    signals.tell(QUEUE, 'third');
    await signals.settle();
    expect(server.groups.toSorted()).toEqual(['first', 'second', 'third']);
  });
});

describe('a notification', () => {
  it('reaches only the worker of its own process, as long as that one has a slot', async () => {
    const free = startWorker(server);
    const full = startWorker(server, 0);
    free.signals.tell(QUEUE, 'a');
    expect(free.now).toEqual(['a']);
    full.signals.tell(QUEUE, 'b');
    await full.signals.settle();
    expect(server.groups).toEqual(['b']);
    expect(free.now).toEqual(['a', 'b']);
  });

  it('reaches one worker first, and the others a moment later', async () => {
    const workers = [startWorker(server), startWorker(server), startWorker(server)];
    await eventually('they know of each other', () => server.said.length >= workers.length);
    const groups = Array.from({ length: 60 }, (_, nth) => `group-${nth}`);
    for (const group of groups) signals.tell(QUEUE, group);
    await signals.settle();
    expect(workers.flatMap(({ now }) => now).toSorted()).toEqual(groups.toSorted());
    for (const { now, later } of workers) {
      expect(now.length).toBeGreaterThan(0);
      expect([...now, ...later].toSorted()).toEqual(groups.toSorted());
    }
  });

  it('reaches the remaining workers when one has stopped', async () => {
    const [first, second] = [startWorker(server), startWorker(server)];
    await eventually('they know of each other', () => server.said.length >= 2);
    second.detach();
    await eventually('the stop is known', () => server.said.some((text) => text.includes('"works":{}')));
    for (let nth = 0; nth < 20; nth++) signals.tell(QUEUE, `group-${nth}`);
    await signals.settle();
    expect(first.now).toHaveLength(20);
    expect([...second.now, ...second.later]).toEqual([]);
  });

  it('is ignored when it is not from this service', async () => {
    const { now } = startWorker(server);
    const stranger = server.channel();
    for (const text of [
      '',
      'x',
      'null',
      '{}',
      '{"from":"x","due":[1]}',
      `{"from":"x","due":{"${QUEUE}":[1]}}`,
    ])
      await stranger.send(text);
    await stranger.send(`{"from":"x","due":{"${QUEUE}":["a"]}}`);
    expect(now).toEqual(['a']);
  });
});
