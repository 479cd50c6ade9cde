import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { type AppliedUpstream, EndTopup } from './end-topup.js';
import type { HeardUpstream, UpstreamWord } from './hear-upstream.js';
import type { ReconcileAction } from './reconcile-action.js';
import type { TopupEntity } from './topup.entity.js';
import { TopupEndingsRepository } from './topup-endings.repository.js';
import { TOPUP_JOBS } from './topup-jobs.js';
import type { TopupLease } from './topup-jobs.repository.js';
import { TopupsRepository } from './topups.repository.js';

export interface ReconcileCommand {
  readonly topupId: string;
  readonly action: ReconcileAction;
  readonly note: string;
  /** What the provider said a moment ago; null allows `requery` only. */
  readonly heard: HeardUpstream | null;
}

const TOO_EARLY =
  'The last placement is so recent that the upstream may not show it yet: try again in a minute.';
const IN_PROGRESS = 'The upstream is still working on it.';

/** What the provider says against support's word; where it is silent, support decides. */
const REFUSALS: Readonly<
  Record<Exclude<ReconcileAction, 'requery'>, Readonly<Partial<Record<UpstreamWord['state'], string>>>>
> = {
  mark_completed: {
    too_early: TOO_EARLY,
    in_progress: IN_PROGRESS,
    not_applied: 'The upstream has certainly not applied it.',
    rejected: 'The upstream has refused it: mark it failed.',
  },
  mark_failed: {
    too_early: TOO_EARLY,
    in_progress: IN_PROGRESS,
    completed: 'The upstream has applied it: mark it completed.',
  },
};

/** Said to the partner; what support knows is in the note. */
const ENDED_BY_SUPPORT: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm the top-up.',
};

/**
 * Support's word on a top-up that does not settle by itself (D22). It takes the top-up over with a higher fence, so
 * that of a worker and support only one can end it.
 */
@Injectable()
export class ReconcileTopup {
  constructor(
    private readonly topups: TopupsRepository,
    private readonly endings: TopupEndingsRepository,
    private readonly end: EndTopup,
    private readonly audit: AuditLog,
    @InjectNotifier(TOPUP_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `conflict` when the top-up's state, or what the provider said, does not allow it */
  async execute(tx: Tx, by: ChangeAuthor, command: ReconcileCommand): Promise<TopupEntity> {
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

  private async perform(tx: Tx, topup: TopupEntity, { action, heard }: ReconcileCommand): Promise<unknown> {
    if (action === 'requery') return this.requery(tx, topup);
    if (!heard) throw hasEnded();
    const refusal = REFUSALS[action][heard.word.state];
    if (refusal !== undefined) throw new AppError('conflict', { detail: refusal });
    const lease = await this.takeOver(tx, topup, heard);
    if (action === 'mark_failed') return this.end.fail(tx, lease, topup, failureOf(heard.word));
    return this.end.complete(tx, lease, topup, appliedOf(heard.word));
  }

  private async requery(tx: Tx, topup: TopupEntity): Promise<void> {
    if (!(await this.endings.makeDue(tx, topup.id))) throw hasEnded();
    tx.afterCommit(() => this.notifier.notify(topup.partnerId));
  }

  private async takeOver(tx: Tx, topup: TopupEntity, { seen }: HeardUpstream): Promise<TopupLease> {
    const lease = await this.endings.takeOver(tx, topup.id, seen);
    if (!lease) throw hasEnded();
    return lease;
  }
}

function failureOf(word: UpstreamWord): ProviderFailure {
  return word.state === 'rejected' ? word.failure : ENDED_BY_SUPPORT;
}

/** What the top-up adds is ours: a provider that says nothing of the eSIM is not needed for it. */
function appliedOf(word: UpstreamWord): AppliedUpstream {
  return word.state === 'completed' ? word : { totalBytes: null, expiresAt: null };
}

function hasEnded(): AppError {
  return new AppError('conflict', {
    detail: 'The top-up has ended, or the upstream is being asked right now.',
  });
}
