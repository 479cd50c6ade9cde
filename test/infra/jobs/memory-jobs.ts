import { pino } from 'pino';
import {
  type Claim,
  type GroupOwner,
  type JobEnd,
  JobInterrupted,
  JobRunner,
  type JobRunnerOptions,
  type JobSource,
} from '../../../src/infra/jobs/index.js';

/** Jobs in memory. Due jobs are an array, and the test decides when a job ends. */
export class MemoryJobs implements JobSource<string> {
  readonly due = new Map<string, string[]>();
  readonly done: string[] = [];
  readonly underWay = new Map<string, () => void>();
  readonly renewed: string[] = [];
  claims = 0;
  failNextClaim = false;
  /** Milliseconds since the epoch. */
  nextDueAt: number | null = null;
  refetch = true;

  add(group: string, count: number): void {
    this.due.set(group, [
      ...(this.due.get(group) ?? []),
      ...Array.from({ length: count }, (_, i) => `${group}-${i}`),
    ]);
  }

  claim(group: string, limit: number): Promise<Claim<string>> {
    this.claims++;
    if (this.failNextClaim) {
      this.failNextClaim = false;
      return Promise.reject(new Error('database is away'));
    }
    const items = (this.due.get(group) ?? []).splice(0, limit);
    const nextDueInMs = this.nextDueAt === null ? null : this.nextDueAt - Date.now();
    return Promise.resolve({ items, nextDueInMs, more: items.length === limit });
  }

  listGroupsDue(after: string): Promise<readonly string[]> {
    return Promise.resolve([...this.due.keys()].filter((group) => group > after).sort());
  }

  /**
   * By default each group has its own owner. The prefixes `live-` and `sandbox-` set the mode, and `@owner` the owner.
   */
  ownerOf(group: string): GroupOwner | null {
    const [name = '', owner = group] = group.split('@');
    return { id: owner, mode: name.startsWith('sandbox') ? 'sandbox' : 'live' };
  }

  renew(jobs: readonly string[]): Promise<void> {
    this.renewed.push(...jobs);
    return Promise.resolve();
  }

  readonly run = (job: string, control: AbortController): Promise<JobEnd> =>
    new Promise((resolve) => {
      const end = (): void => {
        this.underWay.delete(job);
        this.done.push(job);
        resolve({ refetch: this.refetch, wasTimed: true });
      };
      this.underWay.set(job, end);
      control.signal.addEventListener('abort', () => {
        if (control.signal.reason instanceof JobInterrupted) end();
      });
    });

  finishAll(): void {
    for (const finish of this.underWay.values()) finish();
  }
}

export function runnerOf(
  jobs: MemoryJobs,
  concurrencyPerGroup: number,
  concurrency: number,
  options: Partial<JobRunnerOptions<string>> = {},
): JobRunner<string> {
  return new JobRunner(jobs, jobs.run, {
    name: 'test',
    concurrencyPerGroup,
    concurrency,
    sweepIntervalMs: 60_000,
    leaseMs: 60_000,
    drainMs: 10_000,
    recordMs: 1_000,
    logger: pino({ level: 'silent' }),
    notifyAt: () => undefined,
    ...options,
  });
}
