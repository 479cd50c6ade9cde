import { describe, expect, it } from 'vitest';
import { Semaphore } from '../../../src/infra/jobs/semaphore.js';

describe('Semaphore', () => {
  it('lets so many run at once and no more, first come first served, whatever fails', async () => {
    const semaphore = new Semaphore(2);
    const started: number[] = [];
    let running = 0;
    let most = 0;
    const work = async (index: number): Promise<void> => {
      started.push(index);
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      if (index % 2 === 0) throw new Error('claim failed');
    };
    await Promise.allSettled([0, 1, 2, 3, 4, 5].map((index) => semaphore.run(() => work(index))));
    expect([most, running, started]).toEqual([2, 0, [0, 1, 2, 3, 4, 5]]);
    expect(await semaphore.run(() => Promise.resolve('free'))).toBe('free');
  });
});
