import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { type Mode, MODES } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { handleApart } from '../../infra/batcher.js';
import { limitLockWait, Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { EsimObserver } from '../esim-observer.js';
import { type DueWarning, EsimsRepository } from '../esims.repository.js';

const BATCH = 200;
/** A row locked for longer is left to the next run, so that it does not hold up the others. */
const LOCK_WAIT_MS = 500;

/** Records `esim.expiring` when it is due by our own records. Each mode has its own sweep (D41). */
@Injectable()
export class ExpiryWarnings {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs: intervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    for (const mode of MODES) {
      sweeps.register({
        name: `esims.expiry_warnings_${mode}`,
        intervalMs,
        run: (stopping) => this.warnAll(mode, stopping),
      });
    }
  }

  /** One pass over all due warnings, oldest first, so that eSIMs that fail do not hide later ones. */
  private async warnAll(mode: Mode, stopping: AbortSignal): Promise<void> {
    let due: readonly DueWarning[] = [];
    do {
      due = await this.esims.listDueWarnings(mode, BATCH, due.at(-1) ?? null);
      await this.warnApart(due.map(({ id }) => id));
    } while (due.length === BATCH && !stopping.aborted);
  }

  /** Warns in one transaction. If one eSIM fails, its warning stays due and the others are recorded (D43). */
  private async warnApart(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await handleApart(ids, {
      handle: (some) =>
        this.transactions.run(async (tx) => {
          limitLockWait(tx, LOCK_WAIT_MS);
          await this.observer.warn(tx, await this.esims.listByIdsForUpdate(tx, some));
        }),
      failed: (esimId, error) => {
        const line = { event: 'esim.expiry_warning_failed', esimId, err: error };
        this.logger.warn(line, 'failed to record expiry warning; the next run will retry');
      },
    });
  }
}
