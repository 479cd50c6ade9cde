import type { Queue } from 'bullmq';
import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { type NotifyJob, WorkerNotifier } from '../../../src/infra/jobs/index.js';

const ADD_TAKES_MS = 50;

describe('notifications of workers', () => {
  let groups: string[];
  let notifier: WorkerNotifier;

  beforeEach(() => {
    groups = [];
    const add = async (_name: string, job: NotifyJob): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, ADD_TAKES_MS));
      groups.push(...job.groups);
    };
    notifier = new WorkerNotifier(
      { name: 'q', add } as unknown as Queue<NotifyJob>,
      pino({ level: 'silent' }),
    );
  });

  it('all leave when more are asked for while one is about to leave', async () => {
    const asked = ['a', 'b', 'c'];
    for (const group of asked) notifier.notify(group);
    await notifier.settle();
    expect(groups.toSorted()).toEqual(asked);
  });

  it('leave without the one that the queue refuses (D43)', async () => {
    const refuse = (_name: string, job: NotifyJob): Promise<void> => {
      // What PostgreSQL says of U+0000 in a job.
      if (job.groups.includes('b\0')) {
        return Promise.reject(Object.assign(new Error('unsupported Unicode escape'), { code: '22P05' }));
      }
      groups.push(...job.groups);
      return Promise.resolve();
    };
    const queue = { name: 'q', add: refuse } as unknown as Queue<NotifyJob>;
    notifier = new WorkerNotifier(queue, pino({ level: 'silent' }));
    for (const group of ['a', 'b\0', 'c', 'd']) notifier.notify(group);
    await notifier.settle();
    expect(groups.toSorted()).toEqual(['a', 'c', 'd']);
  });

  it('have left when a stop has settled them, those too that were asked for at the last moment', async () => {
    notifier.notify('first');
    await notifier.settle();
    expect(groups).toEqual(['first']);
    notifier.notify('second');
    notifier.notify('third');
    await notifier.settle();
    expect(groups.toSorted()).toEqual(['first', 'second', 'third']);
  });
});
