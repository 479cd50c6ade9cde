import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { boundedCache } from '../../infra/bounded-cache.js';
import { limitLockWait, mayBeOfOneRow, Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { EsimObserver } from '../esim-observer.js';
import { type EndedEsim, EsimsRepository } from '../esims.repository.js';

const BATCH = 200;
/** A row locked for longer is left to the next run, so that it does not hold up the others. */
const LOCK_WAIT_MS = 500;
/** Number of failures remembered as already logged. */
const NAMED = 10_000;

/**
 * Expires eSIMs whose validity has ended by our own records, whatever the provider reports (D24). Each mode has its own
 * sweep: a flood of Sandbox eSIMs does not delay Live (D41).
 */
@Injectable()
export class EsimExpiry {
  /**
   * Failed expiries by eSIM and reason: a run every second must not fill the log with them. The reason is part of the
   * key, because a lock timeout in between does not make the first reason new.
   */
  private readonly named = boundedCache<number>(NAMED);

  constructor(
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs: intervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    for (const mode of ['live', 'sandbox'] as const) {
      sweeps.register({
        name: `esims.expiry_${mode}`,
        intervalMs,
        run: (stopping) => this.expireEnded(mode, stopping),
      });
    }
  }

  /** One pass over all ended eSIMs, oldest first. @throws a database error when listing fails */
  private async expireEnded(mode: Mode, stopping: AbortSignal): Promise<void> {
    let after: EndedEsim | null = null;
    do {
      const ended: readonly EndedEsim[] = await this.esims.listEnded(mode, BATCH, after);
      after = await this.expireUntilAllMayFail(ended, stopping);
    } while (after !== null && !stopping.aborted);
  }

  /**
   * Returns the last eSIM tried, or null when no more follow. Stops after a failure that may concern all eSIMs, so that
   * the list is queried again at once. That query fails if the database is down.
   */
  private async expireUntilAllMayFail(
    ended: readonly EndedEsim[],
    stopping: AbortSignal,
  ): Promise<EndedEsim | null> {
    for (const each of ended) {
      if (stopping.aborted) return null;
      try {
        await this.expire(each.id);
      } catch (error) {
        this.nameOnce(each.id, error);
        if (!mayBeOfOneRow(error)) return each;
      }
    }
    return ended.length === BATCH ? ended.at(-1)! : null;
  }

  private nameOnce(esimId: string, error: unknown): void {
    const failure = `${esimId} ${String(error)}`;
    if (this.named.has(failure)) return;
    this.named.set(failure, 1);
    const line = { event: 'esim.expiry_failed', esimId, err: error };
    this.logger.warn(line, 'failed to expire eSIM; the next run will retry');
  }

  /** One eSIM per transaction. Another worker may have been faster, or a top-up may have extended it. */
  private async expire(id: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      limitLockWait(tx, LOCK_WAIT_MS);
      const esim = await this.esims.findByIdForUpdate(tx, id);
      if (!esim || !(await this.esims.hasEnded(tx, id))) return;
      await this.observer.apply(tx, esim, { kind: 'validity_ended' });
    });
  }
}
