import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { LaneRunner, type LaneWork } from '../../../src/infra/queue/index.js';
import { eventually } from '../../harness/eventually.js';

/** Lanes in memory: what is due is an array, and an item ends when the test says so. */
class MemoryLanes implements LaneWork<string> {
  readonly due = new Map<string, string[]>();
  readonly done: string[] = [];
  readonly underWay = new Map<string, () => void>();
  claims = 0;
  failNextClaim = false;

  add(lane: string, count: number): void {
    this.due.set(lane, [
      ...(this.due.get(lane) ?? []),
      ...Array.from({ length: count }, (_, i) => `${lane}-${i}`),
    ]);
  }

  claim(lane: string, slots: number): Promise<readonly string[]> {
    this.claims++;
    if (this.failNextClaim) {
      this.failNextClaim = false;
      return Promise.reject(new Error('database is away'));
    }
    return Promise.resolve((this.due.get(lane) ?? []).splice(0, slots));
  }

  nextDueAt(): Promise<Date | null> {
    return Promise.resolve(null);
  }

  perform(item: string): Promise<void> {
    return new Promise((resolve) => {
      this.underWay.set(item, () => {
        this.underWay.delete(item);
        this.done.push(item);
        resolve();
      });
    });
  }

  finishAll(): void {
    for (const finish of this.underWay.values()) finish();
  }
}

function runnerOf(work: MemoryLanes, slotsPerLane: number, totalSlots: number): LaneRunner<string> {
  return new LaneRunner(work, {
    slotsPerLane,
    totalSlots,
    logger: pino({ level: 'silent' }),
    wakeAt: () => undefined,
  });
}

describe('LaneRunner', () => {
  it('keeps a hanging lane to its own slots, so that another lane is served at once', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 2, 100);
    work.add('hanging', 50);
    work.add('healthy', 1);
    runner.wake('hanging');
    runner.wake('healthy');
    await eventually('three under way', () => work.underWay.size === 3);
    expect([...work.underWay.keys()].sort()).toEqual(['hanging-0', 'hanging-1', 'healthy-0']);
    work.due.clear();
    work.finishAll();
    await runner.stop();
  });

  it('drains a lane beyond its slots without a second wake-up', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 3, 100);
    work.add('lane', 10);
    runner.wake('lane');
    await eventually('all done', () => {
      work.finishAll();
      return work.done.length === 10;
    });
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });

  it('never exceeds the slots of the process, and serves the lanes that had to wait', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 4, 5);
    for (const lane of ['a', 'b', 'c']) {
      work.add(lane, 4);
      runner.wake(lane);
    }
    let most = 0;
    await eventually('all done', () => {
      most = Math.max(most, work.underWay.size);
      work.finishAll();
      return work.done.length === 12;
    });
    expect(most).toBeLessThanOrEqual(5);
    await runner.stop();
  });

  it('looks again when a wake-up arrives during a claim', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 4, 10);
    runner.wake('lane');
    work.add('lane', 1);
    runner.wake('lane');
    await eventually('claimed', () => work.underWay.size === 1);
    work.finishAll();
    await runner.stop();
  });

  it('survives a failing claim', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 4, 10);
    work.add('lane', 1);
    work.failNextClaim = true;
    runner.wake('lane');
    await eventually('claim failed', () => work.claims === 1);
    runner.wake('lane');
    await eventually('claimed', () => work.underWay.size === 1);
    work.finishAll();
    await runner.stop();
  });

  it('claims nothing after stop, and stop waits for what is under way', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 1, 10);
    work.add('lane', 2);
    runner.wake('lane');
    await eventually('one under way', () => work.underWay.size === 1);
    let stopped = false;
    const stopping = runner.stop().then(() => (stopped = true));
    runner.wake('lane');
    await new Promise((resolve) => setImmediate(resolve));
    expect(stopped).toBe(false);
    work.finishAll();
    await stopping;
    expect(work.done).toEqual(['lane-0']);
  });

  it('serves a healthy lane although every slot was reserved for lanes that turned out to be empty', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 16, 2_048);
    work.add('healthy', 1);
    for (let i = 0; i < 128; i++) runner.wake(`empty-${i}`);
    runner.wake('healthy');
    await eventually('the healthy lane', () => work.underWay.has('healthy-0'), 2_000);
    expect(work.claims).toBe(129);
    work.finishAll();
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });

  it('serves 872 of 1,000 lanes with one item each while the 128 that came first hang', async () => {
    const work = new MemoryLanes();
    const runner = runnerOf(work, 16, 2_048);
    const lanes = Array.from({ length: 1_000 }, (_, i) => `lane${i}`);
    const hanging = lanes.slice(0, 128).map((lane) => `${lane}-0`);
    for (const lane of lanes) work.add(lane, 1);
    for (const lane of lanes) runner.wake(lane);
    await eventually(
      'the other lanes',
      () => {
        for (const [item, finish] of work.underWay) if (!hanging.includes(item)) finish();
        return work.done.length === 872;
      },
      5_000,
    );
    expect([...work.underWay.keys()].sort()).toEqual(hanging.toSorted());
    work.finishAll();
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });
});
