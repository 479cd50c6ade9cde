import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { CatalogService, type PackageEntity, PackageSources } from '../catalog/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import { CursorCodec, SecretBox } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import { type InstallData, takesTopups } from './esim.js';
import { actionsOf, type PossibleActions } from './esim-actions.js';
import type { EsimEntity } from './esim.entity.js';
import { type EsimPlan, plansOf } from './esim-plans.js';
import { type EsimFilters, EsimsRepository } from './esims.repository.js';

/** An eSIM with what can be requested for it. */
export interface ShownEsim extends PossibleActions {
  readonly esim: EsimEntity;
}

/** The order was purged with its eSIMs in between. */
const NO_ACTIONS: PossibleActions = { actions: [], cancelableUntil: null };

/** Reads eSIMs of one partner and mode; anything else is the same 404 (D14). */
@Injectable()
export class EsimQueries {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly esims: EsimsRepository,
    private readonly catalog: CatalogService,
    private readonly sources: PackageSources,
    private readonly secrets: SecretBox,
    private readonly cursors: CursorCodec,
  ) {}

  /** @throws NotFound */
  async getById(scope: ReadScope, id: string): Promise<EsimEntity> {
    const esim = await this.esims.find(scope, id);
    if (!esim) throw new NotFound();
    return esim;
  }

  /** Any partner's eSIM in any mode, for support. @throws NotFound */
  async getOfAny(id: string): Promise<EsimEntity> {
    const [esim] = await this.esims.findAllById([id]);
    if (!esim) throw new NotFound();
    return esim;
  }

  /** The eSIM with its install data, for the two reads that may show it (D25). @throws NotFound */
  async getWithInstallData(
    scope: ReadScope,
    id: string,
  ): Promise<{ esim: EsimEntity; install: InstallData }> {
    const esim = await this.getById(scope, id);
    const sealed = await this.esims.getInstallSecrets(id);
    return { esim, install: JSON.parse(this.secrets.open(sealed, id)) as InstallData };
  }

  /** The eSIMs, each with what can be requested for it now. */
  async show(esims: readonly EsimEntity[], manager: EntityManager = this.manager): Promise<ShownEsim[]> {
    const orders = await this.esims.listSituations(
      manager,
      esims.map(({ orderId }) => orderId),
    );
    return esims.map((esim) => {
      const order = orders.get(esim.orderId);
      return { esim, ...(order ? actionsOf(esim, order) : NO_ACTIONS) };
    });
  }

  async showOne(esim: EsimEntity, manager?: EntityManager): Promise<ShownEsim> {
    return (await this.show([esim], manager))[0]!;
  }

  async list(scope: PartnerScope, filters: EsimFilters, options: ListOptions): Promise<Page<ShownEsim>> {
    const page = await this.esims.list(scope, filters, options);
    return { ...page, items: await this.show(page.items) };
  }

  /** The eSIM's plans by our own records, in the order of purchase. @throws NotFound, AppError `invalid_cursor` */
  async listPlans(
    scope: ReadScope,
    id: string,
    options: ListOptions,
  ): Promise<{ readonly pooled: boolean; readonly page: Page<EsimPlan> }> {
    const esim = await this.getById(scope, id);
    const plans = plansOf(esim, await this.esims.listPlanPurchases(esim));
    return { pooled: esim.pooled, page: this.pageOf(plans, options, ['esim-plans', id]) };
  }

  /** Top-up packages that currently fit this eSIM, cheapest first. @throws NotFound, AppError `invalid_cursor` */
  async listTopupPackages(
    scope: TenantScope,
    id: string,
    options: ListOptions,
  ): Promise<Page<PackageEntity>> {
    const esim = await this.getById(scope, id);
    const fitting = takesTopups(esim) ? await this.listFitting(esim) : [];
    return this.pageOf(fitting, options, ['topup-packages', scope.partnerId, scope.mode, id]);
  }

  private pageOf<T>(
    all: readonly T[],
    { cursor, limit }: ListOptions,
    cursorScope: readonly string[],
  ): Page<T> {
    const start = cursor === undefined ? 0 : Number(this.cursors.decode(cursor, cursorScope)[0]);
    const end = start + limit;
    const hasMore = end < all.length;
    return {
      items: all.slice(start, end),
      hasMore,
      nextCursor: hasMore ? this.cursors.encode([end], cursorScope) : null,
    };
  }

  /** Only the provider that issued an eSIM can top it up. */
  private async listFitting({
    partnerId,
    mode,
    packageId,
    provider,
  }: EsimEntity): Promise<readonly PackageEntity[]> {
    const matching = await this.catalog.listTopupsFor({ partnerId, mode }, packageId);
    const ids = matching.map((item) => item.id);
    const provided = await this.sources.listProvidedBy(this.manager, mode, provider, ids);
    return matching.filter((item) => provided.has(item.id));
  }
}
