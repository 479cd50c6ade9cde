import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { AppError, type ErrorCode } from '../../common/errors/index.js';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import {
  type AutoTopupEntity,
  AutoTopupsRepository,
  type EsimEntity,
  EsimsRepository,
  isCrossed,
} from '../../esims/index.js';
import { limitLockWait, Transactions, type Tx, withSavepoint } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Sweeps } from '../../infra/sweeps.js';
import { PartnersService } from '../../partners/index.js';
import { PlaceTopup } from '../place-topup.js';
import { TopupsRepository } from '../topups.repository.js';

const BATCH = 200;
/** A row locked for longer is left to a later try, so that it does not hold up the others. */
const LOCK_WAIT_MS = 500;
const RETRY_MS = 60_000;

/**
 * Places the top-ups of rules that a threshold has made due (D67). The top-up, its hold and the end of the crossing are
 * one transaction: whatever dies, a crossing gets at most one top-up, and one that is still due is tried again. Each
 * mode has its own sweep, so that a flood of Sandbox eSIMs does not delay Live (D41).
 */
@Injectable()
export class PlaceAutoTopups {
  constructor(
    private readonly placing: PlaceTopup,
    private readonly partners: PartnersService,
    private readonly esims: EsimsRepository,
    private readonly rules: AutoTopupsRepository,
    private readonly topups: TopupsRepository,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) { sweepIntervalMs: intervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    for (const mode of ['live', 'sandbox'] as const) {
      sweeps.register({
        name: `topups.automatic_${mode}`,
        intervalMs,
        run: (stopping) => this.placeDue(mode, stopping),
      });
    }
  }

  /** Ends when nothing is due, because each crossing is ended or postponed. @throws a database error */
  private async placeDue(mode: Mode, stopping: AbortSignal): Promise<void> {
    let due: readonly string[];
    do {
      due = await this.rules.listDue(mode, BATCH);
      for (const esimId of due) {
        if (stopping.aborted) return;
        await this.placeApart(esimId);
      }
    } while (due.length === BATCH);
  }

  /** Postpones a crossing that fails for an unexpected reason, so that the others go ahead. */
  private async placeApart(esimId: string): Promise<void> {
    try {
      await this.place(esimId);
    } catch (error) {
      const line = { event: 'auto_topup.failed', esimId, err: error };
      this.logger.warn(line, 'failed to place automatic top-up; will be retried');
      await this.rules.postpone(esimId, RETRY_MS);
    }
  }

  private async place(esimId: string): Promise<void> {
    const [found] = await this.esims.findAllById([esimId]);
    if (!found) return;
    await this.transactions.run(async (tx) => {
      limitLockWait(tx, LOCK_WAIT_MS);
      // In the order of every purchase: the order, then its eSIM (D40).
      await this.topups.lockCancellation(tx, found, esimId);
      const esim = await this.esims.findByIdForUpdate(tx, esimId);
      const rule = await this.rules.find(esimId, tx.manager);
      // Another worker may have been faster.
      if (!esim || !rule?.dueAt) return;
      const failure = await this.tryToPlace(tx, esim, rule);
      if (failure === 'service_unavailable') await this.rules.postpone(esimId, RETRY_MS, tx.manager);
      else await this.rules.end(tx, esimId, failure);
    });
  }

  /** Returns the code of the refusal; null when the top-up was placed, or the crossing needs none any more. */
  private async tryToPlace(tx: Tx, esim: EsimEntity, rule: AutoTopupEntity): Promise<ErrorCode | null> {
    const { placed, used } = await this.topups.countAutomatic(rule, tx.manager);
    if (!isCrossed(rule, esim) || used >= rule.maxTimes) return null;
    const partner = await this.partners.getByIdForShare(tx, esim.partnerId);
    if (partner.status === 'suspended') return 'partner_suspended';
    const topup = {
      esimId: esim.id,
      packageId: rule.packageId,
      days: null,
      reference: null,
      maxPrice: { amount: rule.maxPriceAmount, currency: rule.maxPriceCurrency },
      metadata: {},
      requestId: rule.id,
      // A crossing that a restored database has forgotten gets the reference of its first top-up again (D54).
      idempotencyKey: `${rule.id}:${placed}`,
      limitedKeyId: rule.limitedKeyId,
      autoTopupId: rule.id,
    };
    try {
      await withSavepoint(tx, (inner) => this.placing.place(inner, esim, topup));
      return null;
    } catch (error) {
      if (error instanceof AppError) return error.code;
      throw error;
    }
  }
}
