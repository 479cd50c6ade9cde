import { Module } from '@nestjs/common';
import { PartnersModule } from '../../partners/index.js';
import { EsimsModule } from '../esims.module.js';
import { PartnerEsimsController } from './partner-esims.controller.js';

@Module({ imports: [PartnersModule, EsimsModule], controllers: [PartnerEsimsController] })
export class EsimsAdminModule {}
