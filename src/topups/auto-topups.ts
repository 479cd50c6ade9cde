import { Injectable } from '@nestjs/common';
import { AppError, NotFound } from '../common/errors/index.js';
import type { ReadScope, TenantScope } from '../common/tenant-scope.js';
import {
  type AutoTopupEntity,
  AutoTopupsRepository,
  type AutoTopupTerms,
  type EsimEntity,
  EsimQueries,
  EsimsRepository,
} from '../esims/index.js';
import type { Tx } from '../infra/database/index.js';
import { PlaceTopup } from './place-topup.js';
import { type AutomaticTopups, TopupsRepository } from './topups.repository.js';

/** A rule with what its status and counts depend on. */
export interface ShownAutoTopup {
  readonly rule: AutoTopupEntity;
  readonly esim: EsimEntity;
  readonly topups: AutomaticTopups;
}

/** The rule of an eSIM's automatic top-ups, as its partner sets and reads it (D67). */
@Injectable()
export class AutoTopups {
  constructor(
    private readonly placing: PlaceTopup,
    private readonly queries: EsimQueries,
    private readonly esims: EsimsRepository,
    private readonly rules: AutoTopupsRepository,
    private readonly topups: TopupsRepository,
  ) {}

  /** @throws NotFound when the partner has no such eSIM, or it has no rule */
  async get(scope: ReadScope, esimId: string): Promise<ShownAutoTopup> {
    const esim = await this.queries.getById(scope, esimId);
    const rule = await this.rules.find(esimId);
    if (!rule) throw new NotFound('This eSIM has no automatic top-up. Set one with PUT on the same path.');
    return { rule, esim, topups: await this.topups.countAutomatic(rule) };
  }

  /**
   * Sets the rule if its top-up could be placed now, and buys nothing.
   * @throws the same as `PlaceTopup.check`
   */
  async set(tx: Tx, scope: TenantScope, esimId: string, terms: AutoTopupTerms): Promise<ShownAutoTopup> {
    const { packageId, maxPriceAmount: amount, maxPriceCurrency: currency } = terms;
    const wanted = { esimId, packageId, days: null, maxPrice: { amount, currency } };
    await this.placing.check(tx, scope, wanted);
    const esim = await this.lock(tx, scope, esimId);
    if (esim.totalBytes === null) {
      throw new AppError('topup_not_supported', {
        detail:
          'This eSIM has unlimited data, so it crosses no usage threshold. Top it up with POST /v1/topups.',
      });
    }
    const rule = await this.rules.set(tx, esim, terms);
    return { rule, esim, topups: await this.topups.countAutomatic(rule, tx.manager) };
  }

  /** Deletes the rule if there is one. A top-up that it has placed continues. @throws NotFound */
  async delete(tx: Tx, scope: TenantScope, esimId: string): Promise<void> {
    await this.lock(tx, scope, esimId);
    await this.rules.delete(tx, esimId);
  }

  private async lock(tx: Tx, scope: TenantScope, esimId: string): Promise<EsimEntity> {
    const esim = await this.esims.findForUpdate(tx, scope, esimId);
    if (!esim) throw new NotFound();
    return esim;
  }
}
