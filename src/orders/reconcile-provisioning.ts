import { Injectable } from '@nestjs/common';
import type { Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { EndOrder } from './end-order.js';
import type { OrderEntity } from './order.entity.js';
import { OrderEndingsRepository } from './order-endings.repository.js';
import { type EndingAction, notWaiting, type OrderWord, refuseTooEarly } from './upstream-word.js';

/** Said to the partner; what support knows is in the note. */
const UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm the order.',
};
const PARTLY_UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm every eSIM of the order.',
};

/**
 * Ends a processing order by support's word, which the provider's allows: issued with what there is of it, or failed.
 * Nothing that is missing is given up before the provider must show it.
 */
@Injectable()
export class ReconcileProvisioning {
  constructor(
    private readonly endings: OrderEndingsRepository,
    private readonly end: EndOrder,
  ) {}

  /** @throws AppError `conflict` */
  async execute(tx: Tx, order: OrderEntity, action: EndingAction, word: OrderWord): Promise<void> {
    const taken = await this.endings.takeOver(tx, order.id, word);
    if (!taken) throw notWaiting();
    const { profiles, failure } = word.parts ?? { profiles: [], failure: null };
    const isComplete = profiles.length >= order.quantity;
    if (action === 'mark_failed' || !isComplete) refuseTooEarly(taken.lagLeftMs);
    const shortfall = isComplete ? null : (failure ?? PARTLY_UNCONFIRMED);
    const ended =
      action === 'mark_failed'
        ? await this.end.fail(tx, taken, order, failure ?? UNCONFIRMED)
        : await this.end.issue(tx, taken, order, { state: 'provisioned', profiles, shortfall });
    if (!ended) throw notWaiting();
  }
}
