import { Module } from '@nestjs/common';
import { CatalogChangesRepository } from '../catalog/index.js';
import { EventsRepository } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { FindSoldPurchases } from './find-sold-purchases.js';
import { RepairRestore } from './repair-restore.js';
import { RestoreEpochsRepository } from './restore-epochs.repository.js';
import { UnclaimedPurchasesRepository } from './unclaimed-purchases.repository.js';

/** The repair for `npm run restore-epoch`. */
@Module({
  imports: [ProvidersModule],
  // Only the repositories: recording events would require webhooks, and nothing is recorded here.
  providers: [
    CatalogChangesRepository,
    EventsRepository,
    RestoreEpochsRepository,
    UnclaimedPurchasesRepository,
    FindSoldPurchases,
    RepairRestore,
  ],
  exports: [RepairRestore],
})
export class RestoreModule {}
