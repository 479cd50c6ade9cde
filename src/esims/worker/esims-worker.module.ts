import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims.module.js';
import { EsimExpiry } from './esim-expiry.js';

@Module({ imports: [EsimsModule], providers: [EsimExpiry] })
export class EsimsWorkerModule {}
