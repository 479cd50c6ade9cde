import { describe, expect, it } from 'vitest';
import type { JobRunner } from '../../../src/infra/jobs/index.js';
import { eventually } from '../../harness/eventually.js';
import { MemoryJobs, runnerOf } from './memory-jobs.js';

describe('JobRunner', () => {
  it('limits a hanging group to its own concurrency, so that another group is served at once', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 2, 100);
    jobs.add('hanging', 50);
    jobs.add('healthy', 1);
    runner.notify('hanging');
    runner.notify('healthy');
    await eventually('three under way', () => jobs.underWay.size === 3);
    expect([...jobs.underWay.keys()].sort()).toEqual(['hanging-0', 'hanging-1', 'healthy-0']);
    jobs.due.clear();
    jobs.finishAll();
    await runner.stop();
  });

  it('processes more jobs of a group than its concurrency without a second notification', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 3, 100);
    jobs.add('group', 10);
    runner.notify('group');
    await eventually('all done', () => {
      jobs.finishAll();
      return jobs.done.length === 10;
    });
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });

  it('never exceeds the concurrency of the process, and serves the groups that had to wait', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 4, 5);
    for (const group of ['a', 'b', 'c']) {
      jobs.add(group, 4);
      runner.notify(group);
    }
    let most = 0;
    await eventually('all done', () => {
      most = Math.max(most, jobs.underWay.size);
      jobs.finishAll();
      return jobs.done.length === 12;
    });
    expect(most).toBeLessThanOrEqual(5);
    await runner.stop();
  });

  it('claims again when a notification arrives during a claim', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 4, 10);
    runner.notify('group');
    jobs.add('group', 1);
    runner.notify('group');
    await eventually('claimed', () => jobs.underWay.size === 1);
    jobs.finishAll();
    await runner.stop();
  });

  it('survives a failing claim', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 4, 10);
    jobs.add('group', 1);
    jobs.failNextClaim = true;
    runner.notify('group');
    await eventually('claim failed', () => jobs.claims === 1);
    runner.notify('group');
    await eventually('claimed', () => jobs.underWay.size === 1);
    jobs.finishAll();
    await runner.stop();
  });

  it('claims nothing after stop, and stop waits for jobs in progress', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 1, 10);
    jobs.add('group', 2);
    runner.notify('group');
    await eventually('one under way', () => jobs.underWay.size === 1);
    let stopped = false;
    const stopping = runner.stop().then(() => (stopped = true));
    runner.notify('group');
    await new Promise((resolve) => setImmediate(resolve));
    expect(stopped).toBe(false);
    jobs.finishAll();
    await stopping;
    expect(jobs.done).toEqual(['group-0']);
  });

  it('serves a healthy group although all slots were reserved for groups that turned out to be empty', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 16, 2_048);
    jobs.add('healthy', 1);
    for (let i = 0; i < 128; i++) runner.notify(`empty-${i}`);
    runner.notify('healthy');
    await eventually('the healthy group', () => jobs.underWay.has('healthy-0'), 2_000);
    expect(jobs.claims).toBe(129);
    jobs.finishAll();
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });

  it('serves 872 of 1,000 groups with one job each while the 128 that came first hang', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 16, 2_048);
    const groups = Array.from({ length: 1_000 }, (_, i) => `group${i}`);
    const hanging = groups.slice(0, 128).map((group) => `${group}-0`);
    for (const group of groups) jobs.add(group, 1);
    for (const group of groups) runner.notify(group);
    await eventually(
      'the other groups',
      () => {
        for (const [job, finish] of jobs.underWay) if (!hanging.includes(job)) finish();
        return jobs.done.length === 872;
      },
      5_000,
    );
    expect([...jobs.underWay.keys()].sort()).toEqual(hanging.toSorted());
    jobs.finishAll();
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });

  it('claims again after a job only if there may be more: the claim left some, or the job made some due', async () => {
    const jobs = new MemoryJobs();
    jobs.refetch = false;
    const runner = runnerOf(jobs, 2, 10);
    jobs.add('group', 1);
    runner.notify('group');
    await eventually('one under way', () => jobs.underWay.size === 1);
    jobs.add('group', 1);
    jobs.finishAll();
    await eventually('it has ended', () => runner.inFlight === 0);
    expect(jobs.claims).toBe(1);
    jobs.refetch = true;
    runner.notify('group');
    await eventually('one under way', () => jobs.underWay.size === 1);
    jobs.finishAll();
    await eventually('it has asked again', () => jobs.claims === 3);
    await runner.stop();
  });

  it("claims once when the group's next job is due: by a timer if that is soon, otherwise by the queue", async () => {
    const jobs = new MemoryJobs();
    const asked: [string, Date][] = [];
    const runner = runnerOf(jobs, 2, 10, { notifyAt: (group, at) => asked.push([group, at]) });
    jobs.nextDueAt = Date.now() + 30_000;
    runner.notify('far');
    await eventually('the queue is asked', () => asked.length === 1);
    runner.notify('far');
    await eventually('claimed twice', () => jobs.claims === 2);
    expect(asked).toHaveLength(1);
    expect(asked[0]![0]).toBe('far');
    expect(Math.abs(asked[0]![1].getTime() - jobs.nextDueAt)).toBeLessThan(100);
    jobs.nextDueAt = Date.now() + 30;
    runner.notify('near');
    await eventually('claimed by the timer', () => jobs.claims >= 4);
    expect(asked).toHaveLength(1);
    await runner.stop();
  });

  it('finds jobs without a notification in its sweep, and renews the leases of jobs in progress', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 2, 10, { sweepIntervalMs: 10, leaseMs: 30 });
    jobs.add('group', 1);
    runner.start();
    await eventually('under way', () => jobs.underWay.has('group-0'));
    await eventually('renewed', () => jobs.renewed.includes('group-0'));
    jobs.finishAll();
    await runner.stop();
  });

  it('interrupts, on a stop, jobs that exceed the time limit, and waits until that is recorded', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 2, 10, { drainMs: 20 });
    jobs.add('group', 2);
    runner.notify('group');
    await eventually('two under way', () => jobs.underWay.size === 2);
    await runner.stop();
    expect(jobs.done.toSorted()).toEqual(['group-0', 'group-1']);
    expect(runner.inFlight).toBe(0);
  });

  it('gives a Sandbox group its own number of slots', async () => {
    const jobs = new MemoryJobs();
    const runner = runnerOf(jobs, 1, 100, { concurrencyPerSandboxGroup: 3 });
    for (const group of ['live-1', 'sandbox-1']) {
      jobs.add(group, 5);
      runner.notify(group);
    }
    await eventually('four are under way', () => jobs.underWay.size === 4);
    expect([...jobs.underWay.keys()].toSorted()).toEqual([
      'live-1-0',
      'sandbox-1-0',
      'sandbox-1-1',
      'sandbox-1-2',
    ]);
    jobs.due.clear();
    jobs.finishAll();
    await runner.stop();
  });

  describe('with places for ready jobs', () => {
    const READY = { readyPerGroup: 2 };
    /** As `PlaceOrder` does: reserves, creates the job, begins it. */
    const create = (runner: JobRunner<string>, group: string, job: string): boolean => {
      const place = runner.reserve(group);
      place?.begin(job);
      return place !== null;
    };

    it('begins created jobs in order as slots become free, without a claim, and keeps their leases', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 10, { ...READY, leaseMs: 30 });
      runner.start();
      expect(['a', 'b', 'c', 'd'].map((job) => create(runner, 'sandbox-1', job))).toEqual([
        true,
        true,
        true,
        false,
      ]);
      await eventually('the waiting ones are renewed', () =>
        ['b', 'c'].every((job) => jobs.renewed.includes(job)),
      );
      expect([...jobs.underWay.keys()]).toEqual(['a']);
      jobs.refetch = false;
      for (const job of ['a', 'b', 'c']) {
        await eventually(`${job} is under way`, () => jobs.underWay.has(job));
        jobs.finishAll();
      }
      await eventually('all end', () => jobs.done.length === 3);
      expect(jobs.done).toEqual(['a', 'b', 'c']);
      expect(jobs.claims).toBe(0);
      await runner.stop();
    });

    it('has places for created jobs in the turn in which the running ones have ended', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 10, READY);
      for (const job of ['a', 'b']) expect(create(runner, 'sandbox-1', job)).toBe(true);
      jobs.refetch = false;
      jobs.finishAll();
      while (runner.inFlight > 1) await Promise.resolve();
      expect(create(runner, 'sandbox-1', 'c')).toBe(true);
      for (const job of ['b', 'c']) {
        await eventually(`${job} is under way`, () => jobs.underWay.has(job));
        jobs.finishAll();
      }
      await runner.stop();
      expect([jobs.done, jobs.claims]).toEqual([['a', 'b', 'c'], 0]);
    });

    it('claims for the places too, and older jobs come before those that are being created', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 10, READY);
      jobs.add('sandbox-1', 3);
      runner.notify('sandbox-1');
      expect(create(runner, 'sandbox-1', 'younger'), 'while it claims').toBe(false);
      await eventually('one is under way', () => jobs.underWay.size === 1);
      expect(jobs.due.get('sandbox-1')).toEqual([]);
      expect(create(runner, 'sandbox-1', 'younger'), 'while more may be due').toBe(false);
      while (jobs.done.length < 3) {
        await eventually('one is under way', () => jobs.underWay.size === 1);
        jobs.finishAll();
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(jobs.done).toEqual(['sandbox-1-0', 'sandbox-1-1', 'sandbox-1-2']);
      await eventually('the group is free', () => create(runner, 'sandbox-1', 'younger'));
      jobs.finishAll();
      await runner.stop();
    });

    it('keeps places for created jobs during a claim, or every later job would need a claim too', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 10, { readyPerGroup: 66 });
      jobs.refetch = false;
      jobs.add('sandbox-1', 1);
      const held = Promise.withResolvers<void>();
      const claim = jobs.claim.bind(jobs);
      jobs.claim = (group, limit) => held.promise.then(() => claim(group, limit));
      runner.notify('sandbox-1');
      expect([0, 1, 2].map((n) => create(runner, 'sandbox-1', `created-${n}`))).toEqual([true, true, false]);
      held.resolve();
      while (jobs.done.length < 3) {
        await eventually('one is under way', () => jobs.underWay.size === 1);
        jobs.finishAll();
        await new Promise((resolve) => setImmediate(resolve));
      }
      await runner.stop();
      expect(jobs.claims).toBe(1);
    });

    it('leases no Live job without a slot: another process may have one', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 10, READY);
      jobs.add('live-1', 3);
      runner.notify('live-1');
      await eventually('one is under way', () => jobs.underWay.size === 1);
      expect(jobs.due.get('live-1')).toHaveLength(2);
      expect(create(runner, 'live-2', 'a')).toBe(true);
      expect(create(runner, 'live-2', 'b')).toBe(false);
      jobs.refetch = false;
      const stopping = runner.stop();
      jobs.finishAll();
      await stopping;
    });

    it('gives a free slot to a waiting Live job before a ready one (D41)', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 2, 4, READY);
      for (const job of ['a', 'b', 'c']) expect(create(runner, 'sandbox-1', job)).toBe(true);
      for (const live of ['live-1', 'live-2', 'live-3']) {
        jobs.add(live, 1);
        runner.notify(live);
      }
      await eventually('all slots are taken', () => jobs.underWay.size === 4);
      jobs.underWay.get('a')!();
      await eventually('the slot is taken again', () => jobs.underWay.size === 4);
      expect([...jobs.underWay.keys()].toSorted()).toEqual(['b', 'live-1-0', 'live-2-0', 'live-3-0']);
      jobs.refetch = false;
      const stopping = runner.stop();
      while (jobs.done.length < 6) {
        jobs.finishAll();
        await new Promise((resolve) => setImmediate(resolve));
      }
      await stopping;
    });

    it('lets no job of a group wait that has no slot: another process may have one', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 2, READY);
      expect(create(runner, 'sandbox-1', 'a')).toBe(true);
      expect(create(runner, 'sandbox-2', 'b'), 'Sandbox has half of the slots').toBe(false);
      expect(create(runner, 'sandbox-1', 'c')).toBe(true);
      jobs.refetch = false;
      const stopping = runner.stop();
      jobs.finishAll();
      await eventually('the ready one begins', () => jobs.underWay.has('c'));
      jobs.finishAll();
      await stopping;
    });

    it('serves a group that waits for its first slot, however many jobs another one creates', async () => {
      const jobs = new MemoryJobs();
      const runner = runnerOf(jobs, 1, 2, READY);
      for (const job of ['a', 'b', 'c']) expect(create(runner, 'sandbox-1', job)).toBe(true);
      jobs.refetch = false;
      jobs.add('sandbox-2', 1);
      runner.notify('sandbox-2');
      for (let more = 0; more < 10 && !jobs.done.includes('sandbox-2-0'); more++) {
        await eventually('the only slot is taken', () => jobs.underWay.size === 1);
        jobs.finishAll();
        create(runner, 'sandbox-1', `more-${more}`);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(jobs.done).toEqual(['a', 'b', 'c', 'sandbox-2-0']);
      jobs.finishAll();
      await runner.stop();
    });

    it('does the ready jobs on a stop, and begins none after its time limit', async () => {
      const jobs = new MemoryJobs();
      const patient = runnerOf(jobs, 1, 10, READY);
      for (const job of ['a', 'b']) create(patient, 'sandbox-1', job);
      const stopping = patient.stop();
      jobs.finishAll();
      await eventually('the ready job begins', () => jobs.underWay.has('b'));
      jobs.finishAll();
      await stopping;
      expect(jobs.done).toEqual(['a', 'b']);

      const hurried = runnerOf(jobs, 1, 10, { ...READY, drainMs: 20 });
      for (const job of ['c', 'd']) create(hurried, 'sandbox-1', job);
      await hurried.stop();
      await new Promise((resolve) => setImmediate(resolve));
      expect(jobs.done).toEqual(['a', 'b', 'c']);
      expect(jobs.underWay.size).toBe(0);
    });
  });
});
