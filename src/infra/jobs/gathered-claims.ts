import { Batcher } from '../batcher.js';
import type { Claim, ClaimRequest, JobSource } from './job-source.js';

/** Groups of one statement at most: it holds what it claims of the first until it has claimed of the last. */
const MOST_GROUPS = 24;
/** So a claim that waits for something does not hold up all others. */
const STATEMENTS_AT_ONCE = 2;
/** Where each group is a statement: more would take all connections of the pool, also from heartbeat and outcomes. */
const SINGLE_CLAIMS_AT_ONCE = 6;

interface WaitingClaim<Job> extends ClaimRequest {
  resolve(claim: Claim<Job>): void;
  reject(error: unknown): void;
}

/**
 * Claims of many groups: the first leaves in the turn in which it is asked for; those that are asked for while others
 * are under way leave as one statement, where the source has one (D51). One that fails fails no other (D43).
 */
export class GatheredClaims<Job> {
  /** Groups to ask for at once. */
  readonly atOnce: number;
  private readonly batcher: Batcher<WaitingClaim<Job>> | null;

  constructor(private readonly source: JobSource<Job>) {
    const isGathering = source.claimMany !== undefined;
    this.atOnce = isGathering ? MOST_GROUPS * STATEMENTS_AT_ONCE : SINGLE_CLAIMS_AT_ONCE;
    this.batcher = isGathering ? this.newBatcher() : null;
  }

  /** @throws what the source throws */
  claim(group: string, limit: number): Promise<Claim<Job>> {
    const { batcher } = this;
    if (!batcher) return this.source.claim(group, limit);
    return new Promise((resolve, reject) => batcher.add({ group, limit, resolve, reject }));
  }

  private newBatcher(): Batcher<WaitingClaim<Job>> {
    return new Batcher({
      maxItems: MOST_GROUPS,
      concurrency: STATEMENTS_AT_ONCE,
      gather: 'microtask',
      handle: async (waiting) => {
        const claims = await this.source.claimMany!(waiting);
        waiting.forEach((one, index) => one.resolve(claims[index]!));
      },
      failed: (one, error) => one.reject(error),
    });
  }
}
