import { Injectable } from '@nestjs/common';
import type { Tx } from '../infra/database/index.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';
import { TopupFitsRepository } from './topup-fits.repository.js';

/** A wholesaler whose bills always differ from its list gives no rest by itself. */
export const DEAR_SALE_REST_MS = 600_000;

/** Has the live catalogue read again when an upstream's refusal shows that it is out of date (docs/providers.md). */
@Injectable()
export class RefreshCatalog {
  constructor(
    private readonly syncs: CatalogSyncsRepository,
    private readonly fits: TopupFitsRepository,
  ) {}

  /**
   * For a sale at `soldAt` whose price the upstream has refused. What was begun after the sale has read the new price:
   * a hundred refused orders make one synchronisation.
   */
  async execute(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt);
  }

  /** As `execute`, for a top-up: a wholesaler may tell its price only where it is asked what fits an eSIM. */
  async ofTopup(tx: Tx, packageId: string, soldAt: Date): Promise<void> {
    await this.fits.wantAgain(tx, packageId);
    await this.execute(tx, soldAt);
  }

  /**
   * For a sale that went through at a higher cost than listed. A wholesaler whose bills always differ from its list
   * must not have it read without end, so once in ten minutes is enough.
   */
  async afterDearSale(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt, DEAR_SALE_REST_MS);
  }
}
