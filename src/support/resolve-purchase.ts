import type { AuditLog, ChangeAuthor } from '../audit/index.js';
import { type AppError, NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { partnerGroup, type WorkerNotifier } from '../infra/jobs/index.js';
import type { AcquiredLease, Purchase, PurchaseJobsRepository, PurchaseVersion } from '../purchases/index.js';
import { conflict, notWaiting } from './resolution-rules.js';

/** What the provider showed of a purchase, and how the purchase stood before the provider was asked. */
interface Inspected {
  readonly version: PurchaseVersion;
}

export interface ResolveCommand<Action extends string, Shown extends Inspected> {
  readonly id: string;
  readonly action: Action | 'requery';
  readonly note: string;
  /** What the provider showed a moment ago; null allows `requery` only. */
  readonly inspected: Shown | null;
}

interface Purchases<P> {
  findByIdForUpdate(tx: Tx, id: string): Promise<P | null>;
}

/**
 * Support's decision on a purchase that does not settle by itself (D22). It acquires the lease with a higher fence, so
 * that of a worker and support only one can complete the purchase.
 */
export abstract class ResolvePurchase<P extends Purchase, Action extends string, Shown extends Inspected> {
  protected constructor(
    private readonly purchases: Purchases<P>,
    private readonly jobs: PurchaseJobsRepository<P>,
    private readonly audit: AuditLog,
    private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `conflict` when the purchase's state, or what the provider shows, does not allow it */
  async resolve(tx: Tx, by: ChangeAuthor, command: ResolveCommand<Action, Shown>): Promise<P> {
    const { id, action, note, inspected } = command;
    const purchase = await this.purchases.findByIdForUpdate(tx, id);
    if (!purchase) throw new NotFound();
    if (action === 'requery') await this.requery(tx, purchase);
    else await this.decide(tx, purchase, action, inspected);
    await this.audit.record(tx, {
      ...by,
      action: `${this.jobs.kind.name}.reconciled`,
      partnerId: purchase.partnerId,
      subjectId: id,
      details: { action, note, ...(inspected && this.detailsOf(inspected)) },
    });
    return (await this.purchases.findByIdForUpdate(tx, id))!;
  }

  /** Why what the provider shows forbids the decision; null when it does not. */
  protected abstract refusalOf(action: Action, purchase: P, inspected: Shown): string | null;

  /**
   * Ends the purchase under the lease. False when the lease is void.
   * @throws AppError `conflict`
   */
  protected abstract end(
    tx: Tx,
    lease: AcquiredLease,
    purchase: P,
    action: Action,
    inspected: Shown,
  ): Promise<boolean>;

  /** What the audit log keeps of what the provider showed. */
  protected detailsOf(_inspected: Shown): Readonly<Record<string, string>> {
    return {};
  }

  private async requery(tx: Tx, purchase: P): Promise<void> {
    if (!(await this.jobs.makeOneDue(tx, purchase.id))) throw this.refused();
    tx.afterCommit(() => this.notifier.notify(partnerGroup(purchase)));
  }

  private async decide(tx: Tx, purchase: P, action: Action, inspected: Shown | null): Promise<void> {
    if (!inspected) throw this.refused();
    const refusal = this.refusalOf(action, purchase, inspected);
    if (refusal !== null) throw conflict(refusal);
    const lease = await this.jobs.acquireLease(tx, purchase.id, inspected.version);
    if (!lease || !(await this.end(tx, lease, purchase, action, inspected))) throw this.refused();
  }

  private refused(): AppError {
    return notWaiting(this.jobs.kind.name);
  }
}
