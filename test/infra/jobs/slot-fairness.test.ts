import { describe, expect, it } from 'vitest';
import type { JobRunner } from '../../../src/infra/jobs/index.js';
import { eventually } from '../../harness/eventually.js';
import { type GroupSlots, type Pace, SlotShares } from '../../../src/infra/jobs/slot-shares.js';
import { MemoryJobs, runnerOf } from './memory-jobs.js';

const names = (prefix: string, count: number, suffix = ''): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}${suffix}`);

const underWayOf = (jobs: MemoryJobs, group: string): number =>
  [...jobs.underWay.keys()].filter((job) => job.startsWith(`${group}-`)).length;

/** Waits for all claims that follow the last change. Claims are promises that settle at once. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
}

function addAll(jobs: MemoryJobs, runner: JobRunner<string>, groups: readonly string[], count: number): void {
  for (const group of groups) jobs.add(group, count);
  for (const group of groups) runner.notify(group);
}

async function stop(jobs: MemoryJobs, runner: JobRunner<string>): Promise<void> {
  jobs.due.clear();
  jobs.finishAll();
  await runner.stop();
}

describe('a slot in a full process', () => {
  it('goes to the group with the fewest jobs in progress, not to the one with the most work', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 4, 4);
    addAll(jobs, runner, ['busy'], 1_000);
    await settle();
    addAll(jobs, runner, ['quiet'], 1);
    let ended = 0;
    await eventually('the quiet group', async () => {
      jobs.underWay.values().next().value!();
      ended++;
      await settle();
      return jobs.underWay.has('quiet-0') || jobs.done.includes('quiet-0');
    });
    expect(ended).toBeLessThanOrEqual(4);
    await stop(jobs, runner);
  });

  it('goes to the group that has waited longest among equally busy ones', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 1, 2);
    const groups = names('group', 6);
    const begun: string[] = [];
    addAll(jobs, runner, groups, 1);
    while (begun.length < groups.length) {
      await settle();
      for (const [job, finish] of jobs.underWay) {
        begun.push(job);
        finish();
      }
    }
    expect(begun).toEqual(groups.map((group) => `${group}-0`));
    await runner.stop();
  });

  it('goes to Live before Sandbox (D41)', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 1, 2);
    addAll(jobs, runner, ['live-busy0', 'live-busy1'], 1);
    await settle();
    addAll(jobs, runner, names('sandbox', 5), 1);
    addAll(jobs, runner, ['live-paid'], 1);
    jobs.underWay.get('live-busy0-0')!();
    await eventually('the paid one', () => jobs.underWay.has('live-paid-0'));
    await stop(jobs, runner);
  });

  it('stays available for Live, however many partners load Sandbox (D41)', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 8, 128);
    addAll(jobs, runner, names('sandbox', 330), 8);
    await settle();
    expect(jobs.underWay.size).toBeLessThanOrEqual(64);
    addAll(jobs, runner, ['live'], 1);
    await settle();
    expect(jobs.underWay.has('live-0')).toBe(true);
    await stop(jobs, runner);
  });
});

describe('a group that hangs from its first job (D42)', () => {
  const SLOTS = 2_048;
  const options = { ownerShare: 1 / 16, keptForOthers: 1 / 2, slowAfterMs: 60_000 };

  it.each([128, 500])(
    'leaves slots to a new group of another owner when there are %i such groups',
    async (count) => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 16, SLOTS, options);
      addAll(jobs, runner, names('hanging', count), 40);
      await settle();
      expect(jobs.underWay.size).toBeLessThanOrEqual(SLOTS / 2);
      addAll(jobs, runner, ['healthy'], 1);
      await settle();
      expect(jobs.underWay.has('healthy-0')).toBe(true);
      await stop(jobs, runner);
    },
  );

  it('never takes slots from a group that has finished in time, however many such groups there are', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 16, SLOTS, options);
    addAll(jobs, runner, ['healthy'], 1);
    await settle();
    jobs.finishAll();
    await settle();
    addAll(jobs, runner, names('hanging', 5_000), 40);
    await settle();
    addAll(jobs, runner, ['healthy'], 16);
    await settle();
    expect(underWayOf(jobs, 'healthy')).toBe(16);
    await stop(jobs, runner);
  });

  it('uses its whole concurrency while there is room, even if its work arrives slowly', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 16, SLOTS, options);
    for (let i = 0; i < 16; i++) {
      jobs.due.set('group', [`group-${i}`]);
      runner.notify('group');
      await settle();
    }
    expect(runner.inFlight).toBe(16);
    await stop(jobs, runner);
  });

  it("shares one bound with others of the same owner, and leaves slots to that owner's other groups", async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 16, SLOTS, options);
    addAll(jobs, runner, names('hanging', 19, '@partner'), 40);
    await settle();
    const held = jobs.underWay.size;
    expect(held).toBeLessThanOrEqual(SLOTS / 16);
    addAll(jobs, runner, ['sibling@partner'], 1);
    await settle();
    expect(jobs.underWay.has('sibling@partner-0')).toBe(true);
    await stop(jobs, runner);
  });

  it('shares at most half of the slots with other slow groups, and at most a quarter with groups known to be slow', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 16, SLOTS, { ...options, slowAfterMs: 50 });
    const hanging = names('hanging', 40);
    addAll(jobs, runner, hanging, 40);
    await settle();
    await new Promise((resolve) => setTimeout(resolve, 200));
    await settle();
    const most = jobs.underWay.size;
    expect(most).toBeLessThanOrEqual(SLOTS / 2);
    // Their time limit has passed without a fast job, so these groups now count as slow.
    jobs.finishAll();
    await settle();
    expect(jobs.underWay.size).toBeGreaterThan(0);
    expect(jobs.underWay.size).toBeLessThanOrEqual(SLOTS / 4);
    await stop(jobs, runner);
  });
});

describe('an owner whose groups hang', () => {
  it('gets a first fast slot for its healthy group, however much of that share others use', () => {
    const shares = new SlotShares({
      ...{
        concurrencyPerGroup: 16,
        concurrency: 2_048,
        ownerShare: 1 / 16,
        keptForOthers: 1 / 2,
        separatesSlow: true,
      },
    });
    const groupOf = (owner: string, pace: Pace): GroupSlots => ({
      ...{ taken: 0, pace, owner: { id: owner, mode: 'live' } },
    });
    const hanging = Array.from({ length: 19 }, () => groupOf('a', 'slow'));
    for (const group of hanging) shares.take(group, 1);
    for (let i = 0; i < 32; i++) shares.take(groupOf(`other${i}`, 'fast'), 15);
    const healthy = groupOf('a', 'fast');
    expect(shares.roomFor(healthy)).toBe(1);
    shares.take(healthy, 1);
    expect(shares.roomFor(healthy)).toBe(0);
  });
});
