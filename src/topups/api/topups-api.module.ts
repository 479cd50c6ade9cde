import { Module } from '@nestjs/common';
import { TopupsModule } from '../topups.module.js';
import { TopupsController } from './topups.controller.js';

@Module({ imports: [TopupsModule], controllers: [TopupsController] })
export class TopupsApiModule {}
