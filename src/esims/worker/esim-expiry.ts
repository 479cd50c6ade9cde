import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { boundedCache } from '../../infra/bounded-cache.js';
import { limitLockWait, Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { EsimObserver } from '../esim-observer.js';
import { type EndedEsim, EsimsRepository } from '../esims.repository.js';

const BATCH = 200;
/** Whatever somebody else has locked for longer is left to the next run, so that it holds up no other. */
const LOCK_WAIT_MS = 500;
/** eSIMs that are remembered as named in the log. */
const NAMED = 10_000;

/**
 * Expires eSIMs whose validity has ended, from our own state, whatever the provider reports (D24). Each mode has a
 * sweep of its own: a flood of Sandbox eSIMs delays no Live one (D41).
 */
@Injectable()
export class EsimExpiry {
  /** By its id, why an eSIM could not be expired: a run every second must not fill the log with it. */
  private readonly named = boundedCache<string>(NAMED);

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

  /** Once through all that have ended, oldest first. @throws Error of the database when it cannot be asked for more */
  private async expireEnded(mode: Mode, stopping: AbortSignal): Promise<void> {
    let after: EndedEsim | null = null;
    do {
      const ended: readonly EndedEsim[] = await this.esims.listEnded(mode, BATCH, after);
      after = await this.expireUntilOneFails(ended, stopping);
    } while (after !== null && !stopping.aborted);
  }

  /**
   * Answers the last one that was tried, null when there are no more behind it. It ends behind one that fails, so that
   * the list is asked for again at once: an eSIM's own fault does not keep it from coming, a database that is away does.
   */
  private async expireUntilOneFails(
    ended: readonly EndedEsim[],
    stopping: AbortSignal,
  ): Promise<EndedEsim | null> {
    for (const each of ended) {
      if (stopping.aborted) return null;
      try {
        await this.expire(each.id);
      } catch (error) {
        this.nameOnce(each.id, error);
        return each;
      }
    }
    return ended.length === BATCH ? ended.at(-1)! : null;
  }

  private nameOnce(esimId: string, error: unknown): void {
    const reason = String(error);
    if (this.named.get(esimId) === reason) return;
    this.named.set(esimId, reason);
    const line = { event: 'esim.expiry_failed', esimId, err: error };
    this.logger.warn(
      line,
      'an eSIM cannot be expired; each run tries again, and names it again for another reason',
    );
  }

  /** One eSIM, one transaction. Another worker may have been faster, or a top-up may have come in between. */
  private async expire(id: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      limitLockWait(tx, LOCK_WAIT_MS);
      const esim = await this.esims.findByIdForUpdate(tx, id);
      if (!esim || !(await this.esims.hasEnded(tx, id))) return;
      await this.observer.apply(tx, esim, { kind: 'validity_ended' });
    });
  }
}
