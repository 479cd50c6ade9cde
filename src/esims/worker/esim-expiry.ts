import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { Sweeps } from '../../infra/sweeps.js';
import { EsimObserver } from '../esim-observer.js';
import { EsimsRepository } from '../esims.repository.js';

const BATCH = 200;

/** Expires eSIMs whose validity has ended, from our own state, whatever the provider reports (D24). */
@Injectable()
export class EsimExpiry {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'sweepIntervalMs'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'esims.expiry',
      intervalMs: config.sweepIntervalMs,
      run: () => this.expireEnded(),
    });
  }

  private async expireEnded(): Promise<void> {
    let ids: readonly string[];
    do {
      ids = await this.esims.listEnded(BATCH);
      for (const id of ids) await this.expire(id);
    } while (ids.length === BATCH);
  }

  /** One eSIM, one transaction. Another worker may have been faster, or a top-up may have come in between. */
  private async expire(id: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      const esim = await this.esims.findByIdForUpdate(tx, id);
      if (!esim || !(await this.esims.hasEnded(tx, id))) return;
      await this.observer.apply(tx, esim, { kind: 'validity_ended' });
    });
  }
}
