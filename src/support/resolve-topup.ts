import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import type { ProviderFailure } from '../providers/index.js';
import {
  type AppliedTopup,
  CompleteTopup,
  TOPUP_JOBS,
  type TopupEntity,
  TopupJobsRepository,
  TopupsRepository,
} from '../topups/index.js';
import type { InspectedTopup } from './inspect-provider-topup.js';
import {
  conflict,
  type ProviderState,
  type ResolveTopupAction,
  topupNotWaiting,
  topupRefusal,
} from './resolution-rules.js';

export interface ResolveTopupCommand {
  readonly topupId: string;
  readonly action: ResolveTopupAction;
  readonly note: string;
  /** What the provider showed a moment ago; null allows `requery` only. */
  readonly inspected: InspectedTopup | null;
}

/** Said to the partner; what support knows is in the note. */
const UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm the top-up.',
};

/**
 * Support's decision on a top-up that does not settle by itself (D22). It acquires the lease with a higher fence, so
 * that of a worker and support only one can complete the top-up.
 */
@Injectable()
export class ResolveTopup {
  constructor(
    private readonly topups: TopupsRepository,
    private readonly jobs: TopupJobsRepository,
    private readonly complete: CompleteTopup,
    private readonly audit: AuditLog,
    @InjectNotifier(TOPUP_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `conflict` when the top-up's state, or what the provider shows, does not allow it */
  async execute(tx: Tx, by: ChangeAuthor, command: ResolveTopupCommand): Promise<TopupEntity> {
    const { topupId, action, note } = command;
    const topup = await this.topups.findByIdForUpdate(tx, topupId);
    if (!topup) throw new NotFound();
    await this.perform(tx, topup, command);
    await this.audit.record(tx, {
      ...by,
      action: 'topup.reconciled',
      partnerId: topup.partnerId,
      subjectId: topupId,
      details: { action, note },
    });
    return (await this.topups.findByIdForUpdate(tx, topupId))!;
  }

  private async perform(
    tx: Tx,
    topup: TopupEntity,
    { action, inspected }: ResolveTopupCommand,
  ): Promise<void> {
    if (action === 'requery') return this.requery(tx, topup);
    if (!inspected) throw topupNotWaiting();
    const { version, state } = inspected;
    const refusal = topupRefusal(action, state);
    if (refusal !== null) throw conflict(refusal);
    const lease = await this.jobs.acquireLease(tx, topup.id, version);
    if (!lease) throw topupNotWaiting();
    const result =
      action === 'mark_failed'
        ? ({ state: 'rejected', failure: failureOf(state) } as const)
        : ({ state: 'completed', ...appliedOf(state) } as const);
    if (!(await this.complete.execute(tx, { lease, topup, result }))) throw topupNotWaiting();
  }

  private async requery(tx: Tx, topup: TopupEntity): Promise<void> {
    if (!(await this.jobs.makeOneDue(tx, topup.id))) throw topupNotWaiting();
    tx.afterCommit(() => this.notifier.notify(partnerGroup(topup)));
  }
}

function failureOf(state: ProviderState): ProviderFailure {
  return state.state === 'rejected' ? state.failure : UNCONFIRMED;
}

/** What the top-up adds is ours: a provider that says nothing of the eSIM is not needed for it. */
function appliedOf(state: ProviderState): AppliedTopup {
  return state.state === 'completed' ? state : { totalBytes: null, expiresAt: null };
}
