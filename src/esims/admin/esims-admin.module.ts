import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims.module.js';
import { PartnerEsimsController } from './partner-esims.controller.js';

@Module({ imports: [EsimsModule], controllers: [PartnerEsimsController] })
export class EsimsAdminModule {}
