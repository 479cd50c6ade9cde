import { describe, expect, it } from 'vitest';
import type { Claim, ClaimRequest, GroupOwner } from '../../../src/infra/jobs/index.js';
import { eventually } from '../../harness/eventually.js';
import { MemoryJobs, runnerOf } from './memory-jobs.js';

/** A source that claims from many groups in one statement, which the test releases. */
class GatheringJobs extends MemoryJobs {
  readonly statements: string[][] = [];
  poisoned = '';
  private readonly waiting: (() => void)[] = [];
  isOpen = true;
  /** Statements for groups with this prefix wait until the source is open. */
  held = '';
  /** Groups whose owner must be read first. */
  readonly unknown = new Set<string>();
  readonly learnt: (readonly string[])[] = [];

  override ownerOf(group: string): GroupOwner | null {
    return this.unknown.has(group) ? null : super.ownerOf(group);
  }

  learnOwners(groups: readonly string[]): Promise<void> {
    this.learnt.push(groups);
    for (const group of groups) this.unknown.delete(group);
    return Promise.resolve();
  }

  async claimMany(requests: readonly ClaimRequest[]): Promise<readonly Claim<string>[]> {
    this.statements.push(requests.map(({ group }) => group));
    const isHeld = !this.isOpen && requests.some(({ group }) => group.startsWith(this.held));
    if (isHeld) await new Promise<void>((resolve) => this.waiting.push(resolve));
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

describe('a source that claims from many groups at once (D51)', () => {
  it('claims at once when no claim is in progress, and collects later requests into one', async () => {
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

  it('combines groups that are notified in one turn into one statement', async () => {
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

  it('fails only the group that PostgreSQL rejects (D43)', async () => {
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

  it('never makes Live wait for Sandbox, however many Sandbox claims are blocked (D41)', async () => {
    const jobs = new GatheringJobs();
    const runner = runnerOf(jobs, 1, 1_000);
    Object.assign(jobs, { isOpen: false, held: 'sandbox' });
    const [sandbox, live] = ['sandbox', 'live'].map((mode) => groupsOf(120).map((name) => `${mode}-${name}`));
    const groups = [...sandbox!, ...live!];
    for (const group of groups) {
      jobs.add(group, 1);
      runner.notify(group);
    }
    await eventually('all of Live are under way', () => jobs.underWay.size === live!.length);
    expect(jobs.statements.filter((one) => one[0]!.startsWith('sandbox'))).toHaveLength(2);
    jobs.open();
    await eventually('all are under way', () => jobs.underWay.size === groups.length);
    const modes = jobs.statements.map((one) => new Set(one.map((group) => group.split('-')[0])).size);
    expect(new Set(modes)).toEqual(new Set([1]));
    jobs.finishAll();
    await runner.stop();
  });

  it('claims once the mode of the group is known, which is read once per turn for all', async () => {
    const jobs = new GatheringJobs();
    const runner = runnerOf(jobs, 1, 1_000);
    const groups = ['sandbox-1', 'live-1', 'sandbox-2', 'live-2'];
    for (const group of groups) {
      jobs.unknown.add(group);
      jobs.add(group, 1);
      runner.notify(group);
    }
    await eventually('all are under way', () => jobs.underWay.size === groups.length);
    expect(jobs.learnt).toEqual([groups]);
    expect(jobs.statements.map((one) => [...one].sort()).sort()).toEqual([
      ['live-1', 'live-2'],
      ['sandbox-1', 'sandbox-2'],
    ]);
    jobs.finishAll();
    await runner.stop();
  });
});
