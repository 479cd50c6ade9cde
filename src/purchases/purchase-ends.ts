import type { Logger } from 'pino';
import { type Mode, perMode } from '../common/mode.js';
import { Batcher } from '../infra/batcher.js';
import { limitLockWait, type Transactions, type Tx } from '../infra/database/index.js';
import { LOCKING_BATCHES, lockWaitMs } from '../infra/jobs/index.js';
import type { PurchaseKind } from './purchase.js';
import type { PurchaseLease } from './purchase-jobs.repository.js';

/** Ends purchases, many in one transaction, with Live and Sandbox separate (D41). */
export class PurchaseEnds<End extends { readonly lease: PurchaseLease }> {
  private readonly batchers = perMode(
    () =>
      new Batcher<End, boolean>({
        ...LOCKING_BATCHES,
        gather: 'turn',
        handle: (ends, failures) =>
          this.transactions.run((tx) => {
            limitLockWait(tx, lockWaitMs(failures));
            return this.complete(tx, ends);
          }),
      }),
  );

  /** @param complete returns whether each result was written: false when its lease is void */
  constructor(
    private readonly kind: PurchaseKind,
    private readonly transactions: Transactions,
    private readonly complete: (tx: Tx, ends: readonly End[]) => Promise<readonly boolean[]>,
    private readonly logger: Logger,
  ) {}

  /** Resolves when the result is committed, or its lease is void. @throws the database's error for this result */
  async add(mode: Mode, end: End): Promise<void> {
    if (await this.batchers[mode].add(end)) return;
    const { name } = this.kind;
    this.logger.warn(
      { event: `${name}.lease_lost`, [`${name}Id`]: end.lease.id },
      'outcome dropped: lease was taken over',
    );
  }
}
