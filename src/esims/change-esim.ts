import { Injectable } from '@nestjs/common';
import { CatalogService } from '../catalog/index.js';
import { NotFound } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { SandboxQuota } from '../partners/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { ControlAction } from './esim.js';
import { requireAction } from './esim-actions.js';
import type { EsimEntity } from './esim.entity.js';
import { EsimObserver } from './esim-observer.js';
import { EsimsRepository } from './esims.repository.js';

export interface EsimLabels {
  /** Null removes it. */
  readonly label?: string | null;
  /** Replaces all pairs. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Changes that a partner requests for one eSIM (D70). */
@Injectable()
export class ChangeEsim {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly catalog: CatalogService,
    private readonly sandboxQuota: SandboxQuota,
  ) {}

  /** Changes the partner's own label and metadata; absent fields stay. @throws NotFound, AppError `limit_reached` */
  async describe(tx: Tx, scope: TenantScope, id: string, labels: EsimLabels): Promise<EsimEntity> {
    const esim = await this.esims.findForUpdate(tx, scope, id);
    if (!esim) throw new NotFound();
    if (Object.keys(labels).length === 0) return esim;
    if (labels.metadata) this.sandboxQuota.take(scope, 0, labels.metadata);
    return this.write(tx, esim, labels, await databaseNow(tx));
  }

  /**
   * Records the request. A worker sends it to the provider, whose answer decides.
   * @throws NotFound, AppError `not_supported` unless the eSIM's `actions` have it, AppError `limit_reached`
   */
  async request(
    tx: Tx,
    scope: TenantScope,
    id: string,
    { action, reason }: { readonly action: ControlAction; readonly reason: string | null },
  ): Promise<EsimEntity> {
    const found = await this.esims.find(scope, id, tx.manager);
    if (!found) throw new NotFound();
    await this.esims.lockOrder(tx, found);
    const esim = await this.esims.findForUpdate(tx, scope, id);
    const order = (await this.esims.listSituations(tx.manager, [found.orderId])).get(found.orderId);
    // The order may have been purged with its eSIMs while this waited for its row.
    if (!esim || !order) throw new NotFound();
    requireAction(esim, order, action);
    this.sandboxQuota.take(scope, 1);
    const now = await databaseNow(tx);
    const requested = { pendingAction: action, actionReason: reason, actionDueAt: now, actionSentAt: null };
    return this.write(tx, esim, { ...requested, actionFailure: null }, now);
  }

  /** Ends the action that a worker claimed with this fence. Null failure: it took effect. Void claims change nothing. */
  async settle(
    tx: Tx,
    { id, actionFence }: Pick<EsimEntity, 'id' | 'actionFence'>,
    failure: ProviderFailure | null,
  ): Promise<void> {
    const esim = await this.esims.findByIdForUpdate(tx, id);
    if (esim?.actionFence !== actionFence) return;
    const goesOn = await this.catalog.goesOn(tx, esim.mode, esim.packageId);
    await this.observer.apply(tx, esim, { kind: 'acted', failure, goesOn });
  }

  private async write(
    tx: Tx,
    esim: EsimEntity,
    changes: Partial<EsimEntity>,
    updatedAt: Date,
  ): Promise<EsimEntity> {
    const written = { ...changes, updatedAt };
    const version = await this.esims.update(tx, esim.id, written);
    return Object.assign(esim, written, { version });
  }
}
