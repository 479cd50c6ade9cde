import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/common/errors/index.js';
import { CallerSlots } from '../../../src/infra/http/caller-slots.js';

const PATIENT = { what: 'lists', perCaller: 2, most: 3, waitMs: 60_000 };

/** Requests `count` slots and records grants in order. Some requests are refused after the end of the test. */
function ask(slots: CallerSlots, name: string, count: number, granted: [string, () => void][]): void {
  for (let i = 0; i < count; i++)
    slots.take(name).then(
      (release) => granted.push([name, release]),
      () => undefined,
    );
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('CallerSlots', () => {
  it('limits a caller to its own share, however many calls it makes', async () => {
    const slots = new CallerSlots(PATIENT);
    const granted: [string, () => void][] = [];
    ask(slots, 'busy', 100, granted);
    ask(slots, 'quiet', 1, granted);
    await settle();
    expect(granted.map(([name]) => name)).toEqual(['busy', 'busy', 'quiet']);
  });

  it('rotates between callers, so that a busy caller waits for its own share', async () => {
    const slots = new CallerSlots(PATIENT);
    const granted: [string, () => void][] = [];
    ask(slots, 'busy', 50, granted);
    ask(slots, 'quiet', 2, granted);
    ask(slots, 'calm', 1, granted);
    await settle();
    expect(granted.map(([name]) => name)).toEqual(['busy', 'busy', 'quiet']);
    granted[0]![1]();
    await settle();
    granted[1]![1]();
    await settle();
    granted[2]![1]();
    await settle();
    expect(granted.map(([name]) => name)).toEqual(['busy', 'busy', 'quiet', 'busy', 'quiet', 'calm']);
  });

  it('releases every slot: after any number of lists, a new one starts at once', async () => {
    const slots = new CallerSlots(PATIENT);
    let ended = 0;
    const lists = Array.from({ length: 200 }, async (_, i) => {
      const release = await slots.take(`partner ${i % 7}`);
      await settle();
      release();
      ended++;
    });
    await Promise.all(lists);
    expect(ended).toBe(200);
    const granted: [string, () => void][] = [];
    ask(slots, 'late', 2, granted);
    ask(slots, 'later', 1, granted);
    await settle();
    expect(granted).toHaveLength(3);
  });

  it('refuses after the wait: 429 to a caller that fills its share, 503 when others fill all', async () => {
    const slots = new CallerSlots({ ...PATIENT, waitMs: 20 });
    const held = [await slots.take('busy'), await slots.take('busy'), await slots.take('quiet')];
    const refusals = await Promise.all(
      ['busy', 'calm'].map((name) => slots.take(name).catch((error: unknown) => error)),
    );
    const told = refusals.map((error) => error instanceof AppError && [error.status, error.headers]);
    expect(told).toEqual([
      [429, { 'retry-after': '1' }],
      [503, { 'retry-after': '1' }],
    ]);
    // A caller that gave up waiting takes no slot.
    held[0]!();
    const release = await slots.take('calm');
    release();
  });

  it('forgets a caller that was only ever refused', async () => {
    const slots = new CallerSlots({ ...PATIENT, most: 1, waitMs: 1 });
    const release = await slots.take('busy');
    const refused = Array.from({ length: 50 }, (_, nth) => slots.take(`stranger ${nth}`));
    await Promise.allSettled(refused);
    expect(slots.size).toBe(1);
    release();
    expect(slots.size).toBe(0);
  });

  it('does not return 429 to a caller whose wait began during a stall', async () => {
    let standsStill = true;
    const slots = new CallerSlots({ ...PATIENT, waitMs: 20, standsStill: () => standsStill });
    await Promise.all([slots.take('busy'), slots.take('busy')]);
    const refused = slots.take('busy');
    standsStill = false;
    await expect(refused).rejects.toMatchObject({ code: 'service_unavailable' });
    await expect(slots.take('busy')).rejects.toMatchObject({ code: 'rate_limited' });
  });

  it('returns 503 during a stall, even to a caller that fills its share', async () => {
    const slots = new CallerSlots({ ...PATIENT, waitMs: 20, standsStill: () => true });
    await slots.take('busy');
    await slots.take('busy');
    const refusal: unknown = await slots.take('busy').catch((error: unknown) => error);
    expect(refusal instanceof AppError && refusal.status).toBe(503);
  });
});
