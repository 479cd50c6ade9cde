import type { Alerts } from '../alerts/index.js';
import type { AuditLog, ChangeAuthor } from '../audit/index.js';
import { type AppError, NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { partnerGroup, type WorkerNotifier } from '../infra/jobs/index.js';
import type { AcquiredLease, Purchase, PurchaseJobsRepository, PurchaseVersion } from '../purchases/index.js';
import { endsWithDecision } from './needs-review.js';
import { conflict, undecidable } from './resolution-rules.js';

/** A purchase's state at its provider, and our version of it before the query. */
interface Inspected {
  readonly version: PurchaseVersion;
}

export interface ResolveCommand<Action extends string, Shown extends Inspected> {
  readonly id: string;
  readonly action: Action | 'requery';
  readonly note: string;
  /** The recent provider state; null permits `requery` only. */
  readonly inspected: Shown | null;
}

interface Purchases<P> {
  findByIdForUpdate(tx: Tx, id: string): Promise<P | null>;
}

/**
 * Applies support's decision on a purchase that needs review (D22). It acquires the lease with a higher fence, so that
 * either a worker or support can complete the purchase, never both.
 */
export abstract class ResolvePurchase<P extends Purchase, Action extends string, Shown extends Inspected> {
  protected constructor(
    private readonly purchases: Purchases<P>,
    private readonly jobs: PurchaseJobsRepository<P>,
    private readonly alerts: Alerts,
    private readonly audit: AuditLog,
    private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `conflict` when the purchase's state or the provider's state does not permit it */
  async resolve(tx: Tx, by: ChangeAuthor, command: ResolveCommand<Action, Shown>): Promise<P> {
    const { id, action, note, inspected } = command;
    const purchase = await this.purchases.findByIdForUpdate(tx, id);
    if (!purchase) throw new NotFound();
    if (action === 'requery') await this.requery(tx, purchase);
    else {
      await this.decide(tx, purchase, action, inspected);
      await this.alerts.resolveOf(tx, `${this.jobs.kind.name}.needs_review`, id, endsWithDecision);
    }
    await this.audit.record(tx, {
      ...by,
      action: `${this.jobs.kind.name}.reconciled`,
      partnerId: purchase.partnerId,
      subjectId: id,
      details: { action, note, ...(inspected && this.detailsOf(inspected)) },
    });
    return (await this.purchases.findByIdForUpdate(tx, id))!;
  }

  /** Why the provider's state forbids the decision; null when it does not. */
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

  /** Details of the provider's state for the audit log. */
  protected detailsOf(_inspected: Shown): Readonly<Record<string, string>> {
    return {};
  }

  private async requery(tx: Tx, purchase: P): Promise<void> {
    if (!(await this.jobs.makeOneDue(tx, purchase.id))) throw this.refused(purchase);
    tx.afterCommit(() => this.notifier.notify(partnerGroup(purchase)));
  }

  private async decide(tx: Tx, purchase: P, action: Action, inspected: Shown | null): Promise<void> {
    if (!inspected) throw this.refused(purchase);
    const refusal = this.refusalOf(action, purchase, inspected);
    if (refusal !== null) throw conflict(refusal);
    const lease = await this.jobs.acquireLease(tx, purchase.id, inspected.version);
    if (!lease || !(await this.end(tx, lease, purchase, action, inspected))) throw this.refused(purchase);
  }

  private refused(purchase: P): AppError {
    return undecidable(this.jobs.kind.name, purchase);
  }
}
