import type { Queue } from 'bullmq';
import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { type WakeUpJob, WakeUps } from '../../../src/infra/queue/index.js';

const ADD_TAKES_MS = 50;

describe('notifications of workers', () => {
  let lanes: string[];
  let wakeUps: WakeUps;

  beforeEach(() => {
    lanes = [];
    const add = async (_name: string, job: WakeUpJob): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, ADD_TAKES_MS));
      lanes.push(...job.lanes);
    };
    wakeUps = new WakeUps({ name: 'q', add } as unknown as Queue<WakeUpJob>, pino({ level: 'silent' }));
  });

  it('all leave when more are asked for while one is about to leave', async () => {
    const asked = ['a', 'b', 'c'];
    for (const lane of asked) wakeUps.request(lane);
    await wakeUps.settle();
    expect(lanes.toSorted()).toEqual(asked);
  });

  it('have left when a stop has settled them, those too that were asked for at the last moment', async () => {
    wakeUps.request('first');
    await wakeUps.settle();
    expect(lanes).toEqual(['first']);
    wakeUps.request('second');
    wakeUps.request('third');
    await wakeUps.settle();
    expect(lanes.toSorted()).toEqual(['first', 'second', 'third']);
  });
});
