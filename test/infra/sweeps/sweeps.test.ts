import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { purgeInSteps } from '../../../src/infra/purge-in-steps.js';
import { NOTHING_DUE, Sweeps } from '../../../src/infra/sweeps.js';
import { eventually } from '../../harness/eventually.js';

const logger = pino({ level: 'silent' });
const HOUR_MS = 3_600_000;

describe('a sweep of a worker', () => {
  it('starts after the previous one, so that a startup does not use every connection', async () => {
    const sweeps = new Sweeps(logger);
    const begun: { name: string; atMs: number }[] = [];
    for (const name of ['a', 'b', 'c', 'd']) {
      const run = () => Promise.resolve(begun.push({ name, atMs: performance.now() }));
      sweeps.register({ name, intervalMs: HOUR_MS, run });
    }
    sweeps.onApplicationBootstrap();
    expect(begun.map(({ name }) => name)).toEqual(['a']);
    await eventually('all have begun', () => begun.length === 4);
    await sweeps.beforeApplicationShutdown();
    expect(begun.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
    // On a busy machine timers fire late and together, but never early.
    expect(begun[3]!.atMs - begun[0]!.atMs).toBeGreaterThanOrEqual(70);
  });

  it('starts late if it can wait, and not at all when a stop comes first', async () => {
    const sweeps = new Sweeps(logger);
    const begun: string[] = [];
    const begins = (name: string, firstAfterMs: number): void =>
      sweeps.register({
        name,
        intervalMs: HOUR_MS,
        firstAfterMs,
        run: () => Promise.resolve(begun.push(name)),
      });
    begins('never', HOUR_MS);
    begins('purge', 200);
    begins('urgent', 0);
    const startedAt = performance.now();
    sweeps.onApplicationBootstrap();
    begins('registered later', 200);
    await eventually('the purge has begun', () => begun.includes('purge'));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(200);
    expect(begun[0]).toBe('urgent');
    await eventually('the later one has begun', () => begun.includes('registered later'));
    await sweeps.beforeApplicationShutdown();
    expect(begun).not.toContain('never');
  });

  it('pauses longer after a run that found nothing to do', async () => {
    const sweeps = new Sweeps(logger);
    const counts = { found: 0, nothing: 0 };
    const begins = (name: 'found' | 'nothing', answer: unknown): void =>
      sweeps.register({
        name,
        intervalMs: 1,
        idleIntervalMs: HOUR_MS,
        run: () => Promise.resolve(answer).finally(() => counts[name]++),
      });
    begins('nothing', NOTHING_DUE);
    begins('found', 3);
    sweeps.onApplicationBootstrap();
    await eventually('the one that finds something ran again and again', () => counts.found > 5);
    await sweeps.beforeApplicationShutdown();
    expect(counts.nothing).toBe(1);
  });

  it('is notified of a stop, which waits for the current run and prevents further ones', async () => {
    const sweeps = new Sweeps(logger);
    let [steps, later] = [0, 0];
    const count = async (stopping: AbortSignal): Promise<void> => {
      while (!stopping.aborted) await new Promise((resolve) => setImmediate(() => resolve(steps++)));
    };
    sweeps.register({ name: 'long', intervalMs: 1, run: count });
    sweeps.register({ name: 'later', intervalMs: 1, run: () => Promise.resolve(later++) });
    sweeps.onApplicationBootstrap();
    await eventually('under way', () => steps > 3);
    await sweeps.beforeApplicationShutdown();
    const atTheStop = [steps, later];
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect([steps, later]).toEqual(atTheStop);
  });
});

describe('a purge in steps (D44)', () => {
  it('continues until nothing is left, however much there is', async () => {
    let left = 25_400;
    const step = (limit: number): Promise<number> => {
      const deleted = Math.min(limit, left);
      left -= deleted;
      return Promise.resolve(deleted);
    };
    expect(await purgeInSteps(step, { batchRows: 100 })).toBe(25_400);
    expect(left).toBe(0);
  });

  it('ends after the current step on a stop, even during a pause', async () => {
    const stop = new AbortController();
    let steps = 0;
    const step = async (limit: number): Promise<number> => {
      // The second step takes long, and so would those after it.
      if (++steps === 2) await new Promise((resolve) => setTimeout(resolve, 300));
      if (steps === 2) setTimeout(() => stop.abort(), 20);
      return limit;
    };
    expect(await purgeInSteps(step, { batchRows: 10, stopping: stop.signal })).toBe(20);
    expect(steps).toBe(2);
  });
});
