import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { InjectNotifier, notifierModule, WorkerNotifier } from '../infra/jobs/index.js';
import { Tracer } from '../infra/tracing/index.js';
import { PurchaseJobsRepository } from '../purchases/index.js';
import { type TopupEntity, TOPUPS } from './topup.js';

/** BullMQ queue that wakes workers for top-ups; a group is a partner and a mode, and groups take turns (D27, D41). */
export const TOPUP_JOBS = 'topup-jobs';

export const TopupNotifierModule = notifierModule(TOPUP_JOBS);

const END_ASSIGNMENTS = `
  status = CASE WHEN h.fulfilled > 0 THEN 'completed' ELSE 'failed' END,
  completed_at = CASE WHEN h.fulfilled > 0 THEN now() END`;

/**
 * SQL for claims, leases, placements and results in `topups`. The claim records no placement, because a top-up whose
 * eSIM has ended is never placed.
 */
@Injectable()
export class TopupJobsRepository extends PurchaseJobsRepository<TopupEntity> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
    tracer: Tracer,
  ) {
    const sqlParts = { claimRecordsPlacement: false, endAssignments: END_ASSIGNMENTS };
    super(manager, TOPUPS, { ...sqlParts, leaseMs, notifier, tracer });
  }
}
