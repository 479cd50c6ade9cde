import { describe, expect, it } from 'vitest';
import type { Claim, ClaimRequest } from '../../../src/infra/jobs/index.js';
import { eventually } from '../../harness/eventually.js';
import { MemoryJobs, runnerOf } from './memory-jobs.js';

/** A source that claims from many groups in one statement, which the test lets go on. */
class GatheringJobs extends MemoryJobs {
  readonly statements: string[][] = [];
  poisoned = '';
  private readonly waiting: (() => void)[] = [];
  isOpen = true;

  async claimMany(requests: readonly ClaimRequest[]): Promise<readonly Claim<string>[]> {
    this.statements.push(requests.map(({ group }) => group));
    if (!this.isOpen) await new Promise<void>((resolve) => this.waiting.push(resolve));
    if (requests.some(({ group }) => group === this.poisoned))
      throw Object.assign(new Error('invalid input syntax'), { code: '22P02' });
    return Promise.all(requests.map(({ group, limit }) => this.claim(group, limit)));
  }

  open(): void {
    this.isOpen = true;
    for (const goOn of this.waiting.splice(0)) goOn();
  }
}

const groupsOf = (count: number): string[] => Array.from({ length: count }, (_, nth) => `group${nth}`);

describe('claims of a source that claims from many groups at once (D51)', () => {
  it('leave at once when nothing is under way, and together what is asked for meanwhile', async () => {
    const jobs = new GatheringJobs();
    const runner = runnerOf(jobs, 1, 1_000);
    jobs.isOpen = false;
    const groups = groupsOf(20);
    for (const group of groups) jobs.add(group, 1);
    for (const group of groups.slice(0, 2)) {
      runner.notify(group);
      await Promise.resolve();
    }
    expect(jobs.statements).toEqual([['group0'], ['group1']]);
    for (const group of groups.slice(2)) {
      runner.notify(group);
      await Promise.resolve();
    }
    expect(jobs.statements).toHaveLength(2);
    jobs.open();
    await eventually('all are under way', () => jobs.underWay.size === groups.length);
    expect(jobs.statements[2]).toEqual(groups.slice(2));
    jobs.finishAll();
    await runner.stop();
  });

  it('of groups that are told of in one turn are one statement', async () => {
    const jobs = new GatheringJobs();
    const runner = runnerOf(jobs, 1, 1_000);
    const groups = groupsOf(10);
    for (const group of groups) jobs.add(group, 1);
    for (const group of groups) runner.notify(group);
    await eventually('all are under way', () => jobs.underWay.size === groups.length);
    expect(jobs.statements[0]).toEqual(groups);
    jobs.finishAll();
    await runner.stop();
  });

  it('fail no neighbour of the one group that PostgreSQL refuses (D43)', async () => {
    const jobs = new GatheringJobs();
    const runner = runnerOf(jobs, 1, 1_000);
    const groups = groupsOf(9);
    jobs.poisoned = 'group4';
    for (const group of groups) jobs.add(group, 1);
    for (const group of groups) runner.notify(group);
    await eventually('all others are under way', () => jobs.underWay.size === groups.length - 1);
    expect(jobs.underWay.has('group4-0')).toBe(false);
    jobs.finishAll();
    await runner.stop();
    expect(runner.inFlight).toBe(0);
  });
});
