import { Injectable } from '@nestjs/common';
import { Alerts } from '../alerts/index.js';
import { AuditLog } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { AcquiredLease } from '../purchases/index.js';
import {
  type AppliedTopup,
  CompleteTopup,
  TOPUP_JOBS,
  type TopupEntity,
  TopupJobsRepository,
  TopupsRepository,
} from '../topups/index.js';
import type { InspectedTopup } from './inspect-provider-topup.js';
import { type ProviderState, type TopupOutcomeAction, topupRefusal } from './resolution-rules.js';
import { ResolvePurchase } from './resolve-purchase.js';

/** Shown to the partner; support's own findings are in the note. */
const UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The wholesaler did not confirm the top-up.',
};

@Injectable()
export class ResolveTopup extends ResolvePurchase<TopupEntity, TopupOutcomeAction, InspectedTopup> {
  constructor(
    topups: TopupsRepository,
    jobs: TopupJobsRepository,
    private readonly complete: CompleteTopup,
    alerts: Alerts,
    audit: AuditLog,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
  ) {
    super(topups, jobs, alerts, audit, notifier);
  }

  protected override refusalOf(
    action: TopupOutcomeAction,
    _topup: TopupEntity,
    { state }: InspectedTopup,
  ): string | null {
    return topupRefusal(action, state);
  }

  protected override end(
    tx: Tx,
    lease: AcquiredLease,
    topup: TopupEntity,
    action: TopupOutcomeAction,
    { state }: InspectedTopup,
  ): Promise<boolean> {
    const result =
      action === 'mark_failed'
        ? ({ state: 'rejected', failure: failureOf(state) } as const)
        : ({ state: 'completed', ...appliedOf(state) } as const);
    return this.complete.complete(tx, { lease, topup, result });
  }
}

function failureOf(state: ProviderState): ProviderFailure {
  return state.state === 'rejected' ? state.failure : UNCONFIRMED;
}

/** We know what the top-up adds, so it can be applied without the provider's report about the eSIM. */
function appliedOf(state: ProviderState): AppliedTopup {
  return state.state === 'completed' ? state : { totalBytes: null, expiresAt: null };
}
