import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { limitLockWait, type Transactions, type Tx } from '../database/index.js';
import { GroupCommitByMode } from '../group-commit.js';

const MAX_BATCH = 64;
const GATHER_MS = 5;
const MAX_UNDER_WAY = 4;

export interface JobEndsOptions<End> {
  /** As it begins the names of log events: `order`. */
  readonly name: string;
  readonly transactions: Transactions;
  readonly logger: Logger;
  modeOf(end: End): Mode;
  /** What the log says of one. */
  about(end: End): Readonly<Record<string, string>>;
  /** Writes the ends in `tx`; false for each whose lease is void, and then nothing was written for it. */
  write(tx: Tx, ends: readonly End[]): Promise<readonly boolean[]>;
}

/**
 * Writes how jobs ended, those that end at about the same time in one transaction (B13). Live and Sandbox have
 * transactions of their own: nothing that Sandbox waits for delays what is paid for (D41).
 */
export class JobEnds<End> {
  private readonly commits: GroupCommitByMode<End, boolean>;

  protected constructor(private readonly options: JobEndsOptions<End>) {
    const { name, logger } = options;
    this.commits = new GroupCommitByMode<End, boolean>({
      commit: (ends, lockWaitMs) => this.commit(ends, lockWaitMs),
      batchFailed: (ends, error) =>
        logger.warn(
          { event: `${name}.batch_failed`, count: ends.length, err: error },
          'each is written alone',
        ),
      maxItems: MAX_BATCH,
      gatherMs: GATHER_MS,
      maxUnderWay: MAX_UNDER_WAY,
    });
  }

  /** Resolves when the end is committed, or its lease was void. @throws what PostgreSQL says of this one */
  async add(end: End): Promise<void> {
    const { name, logger } = this.options;
    const isWritten = await this.commits.add(this.options.modeOf(end), end);
    if (isWritten) return;
    const line = { event: `${name}.lease_lost`, ...this.options.about(end) };
    logger.warn(line, 'nothing is written: the lease is another');
  }

  private commit(ends: readonly End[], lockWaitMs: number): Promise<readonly boolean[]> {
    return this.options.transactions.run((tx) => {
      limitLockWait(tx, lockWaitMs);
      return this.options.write(tx, ends);
    });
  }
}
