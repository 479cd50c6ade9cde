import { Injectable } from '@nestjs/common';
import type { Tx } from '../infra/database/index.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';

/** A provider whose bills always differ from its list gives no rest by itself. */
export const COST_OVERRUN_COOLDOWN_MS = 600_000;

/** Has the live catalogue read again when a provider's refusal shows that it is out of date (docs/providers.md). */
@Injectable()
export class RefreshCatalog {
  constructor(private readonly syncs: CatalogSyncsRepository) {}

  /**
   * For a sale at `soldAt` whose price the provider has refused. What was begun after the sale has read the new price:
   * a hundred refused orders make one synchronisation.
   */
  async execute(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt);
  }

  /**
   * For a sale that went through at a higher cost than listed. A provider whose bills always differ from its list
   * must not have it read without end, so once in ten minutes is enough.
   */
  async afterCostOverrun(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt, COST_OVERRUN_COOLDOWN_MS);
  }
}
