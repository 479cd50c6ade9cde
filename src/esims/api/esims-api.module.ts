import { Module } from '@nestjs/common';
import { EsimsModule } from '../esims.module.js';
import { EsimsController } from './esims.controller.js';
import { SandboxEsimsController } from './sandbox-esims.controller.js';

@Module({ imports: [EsimsModule], controllers: [EsimsController, SandboxEsimsController] })
export class EsimsApiModule {}
