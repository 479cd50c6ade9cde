import { Module } from '@nestjs/common';
import { PartnersModule } from '../../partners/index.js';
import { TopupsModule } from '../topups.module.js';
import { PartnerTopupsController } from './partner-topups.controller.js';

@Module({ imports: [PartnersModule, TopupsModule], controllers: [PartnerTopupsController] })
export class TopupsAdminModule {}
