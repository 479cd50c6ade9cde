import { Module } from '@nestjs/common';
import { CatalogModule } from '../catalog/index.js';
import { EventsModule } from '../events/index.js';
import { ProvidersModule } from '../providers/index.js';
import { EsimObserver } from './esim-observer.js';
import { EsimsRepository } from './esims.repository.js';
import { IssueEsims } from './issue-esims.js';
import { ReadEsims } from './read-esims.js';
import { SimulateEsim } from './simulate-esim.js';

@Module({
  imports: [CatalogModule, EventsModule, ProvidersModule],
  providers: [EsimsRepository, EsimObserver, IssueEsims, ReadEsims, SimulateEsim],
  exports: [EsimsRepository, EsimObserver, IssueEsims, ReadEsims, SimulateEsim],
})
export class EsimsModule {}
