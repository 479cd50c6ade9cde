import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/index.js';
import { Clock, SystemClock } from '../common/clock.js';
import { PartnersRepository } from './partners.repository.js';
import { PartnersService } from './partners.service.js';
import { SandboxQuota } from './sandbox-quota.js';

@Module({
  imports: [AuditModule],
  providers: [PartnersRepository, PartnersService, SandboxQuota, { provide: Clock, useClass: SystemClock }],
  exports: [PartnersRepository, PartnersService, SandboxQuota],
})
export class PartnersModule {}
