import { Module } from '@nestjs/common';
import { EventsRepository } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { FindSoldPurchases } from './find-sold-purchases.js';
import { RepairRestore } from './repair-restore.js';
import { RestoreEpochsRepository } from './restore-epochs.repository.js';
import { UnclaimedPurchasesRepository } from './unclaimed-purchases.repository.js';

/** Repairing, for `npm run restore-epoch`. */
@Module({
  imports: [ProvidersModule],
  // The repository alone: whoever records events has to tell webhooks of them, and nothing is recorded here.
  providers: [
    EventsRepository,
    RestoreEpochsRepository,
    UnclaimedPurchasesRepository,
    FindSoldPurchases,
    RepairRestore,
  ],
  exports: [RepairRestore],
})
export class RestoreModule {}
