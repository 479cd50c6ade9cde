import { Injectable } from '@nestjs/common';
import type { Tx } from '../infra/database/index.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';

/** Has the live catalogue read again when an upstream's refusal shows that it is out of date (esim.md, 3.1). */
@Injectable()
export class RefreshCatalog {
  constructor(private readonly syncs: CatalogSyncsRepository) {}

  /**
   * For a sale at `soldAt` whose price the upstream has refused. What was begun after the sale has read the new price:
   * a hundred refused orders make one synchronisation.
   */
  async execute(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt);
  }
}
