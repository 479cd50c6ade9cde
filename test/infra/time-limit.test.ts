import { describe, expect, it } from 'vitest';
import { endsWithin, untilAborted, withinLimit } from '../../src/common/time-limit.js';

const LATE = new Error('late');
const never = (): Promise<never> => new Promise(() => undefined);

describe('a time limit', () => {
  it('rejects work that hangs, and aborts it for the same reason', async () => {
    let seen: AbortSignal | undefined;
    const work = withinLimit(
      10,
      () => LATE,
      (signal) => ((seen = signal), never()),
    );
    await expect(work).rejects.toBe(LATE);
    expect(seen!.reason).toBe(LATE);
    expect(await endsWithin(never(), 10)).toBe(false);
  });

  it('returns or throws the result that arrived in time', async () => {
    expect(
      await withinLimit(
        60_000,
        () => LATE,
        () => Promise.resolve('done'),
      ),
    ).toBe('done');
    await expect(endsWithin(Promise.reject(new Error('failed')), 60_000)).rejects.toThrow('failed');
    expect(await endsWithin(Promise.resolve(), 60_000)).toBe(true);
  });

  it('accepts a result that arrived while the process was frozen', async () => {
    const work = new Promise<void>((resolve) => {
      setImmediate(() => resolve());
      const until = performance.now() + 50;
      while (performance.now() < until);
    });
    expect(await endsWithin(work, 1)).toBe(true);
  });

  it('rejects with the abort reason, however the work handles the abort', async () => {
    const control = new AbortController();
    const work = untilAborted(
      control.signal,
      (signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('other')))),
    );
    control.abort(LATE);
    await expect(work).rejects.toBe(LATE);
    await expect(untilAborted(control.signal, never)).rejects.toBe(LATE);
  });
});
