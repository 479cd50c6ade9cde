import { Injectable } from '@nestjs/common';
import type { Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { type CancelOutcome, EndCancellation } from './end-cancellation.js';
import type { OrderEntity } from './order.entity.js';
import { OrderEndingsRepository } from './order-endings.repository.js';
import {
  type CancellationWord,
  conflict,
  type EndingAction,
  notWaiting,
  refuseTooEarly,
} from './upstream-word.js';

/** Said to the partner; what support knows is in the note. */
const NOT_TAKEN_BACK: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not take the order back.',
};

/**
 * Ends a cancellation by support's word, which the provider's allows. Issued: the order stays with the partner, but
 * for what the provider took back of it. Failed: it is taken back as a whole, and refunded.
 */
@Injectable()
export class ReconcileCancellation {
  constructor(
    private readonly endings: OrderEndingsRepository,
    private readonly end: EndCancellation,
  ) {}

  /** @throws AppError `conflict` */
  async execute(tx: Tx, order: OrderEntity, action: EndingAction, word: CancellationWord): Promise<void> {
    const taken = await this.endings.takeOver(tx, order.id, word);
    if (!taken) throw notWaiting();
    // What a call of a moment ago took back may not show yet.
    if (action === 'mark_issued') refuseTooEarly(taken.lagLeftMs);
    const isCanceled = action === 'mark_failed' ? () => true : seenCanceled(word);
    const status = await this.end.record(tx, taken, order, { isCanceled, failure: NOT_TAKEN_BACK });
    if (status === null) throw notWaiting();
    if (action === 'mark_failed' && status !== 'canceled')
      throw conflict('No eSIM of the order is left that could be taken back: mark it issued.');
  }
}

function seenCanceled({ cancelStatuses }: CancellationWord): CancelOutcome['isCanceled'] {
  const canceled = (cancelStatuses ?? []).filter(({ cancelStatus }) => cancelStatus === 'canceled');
  const ids = new Set(canceled.map(({ providerEsimId }) => providerEsimId));
  return (esim) => ids.has(esim.providerEsimId);
}
