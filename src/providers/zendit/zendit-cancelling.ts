import { setTimeout as delay } from 'node:timers/promises';
import {
  type ProviderCancelRequest,
  type ProviderCancelState,
  ProviderOutcomeUnknown,
} from '../esim-provider.js';
import { eachValue } from './settle-each.js';
import type { ZenditApi } from './zendit-api.js';
import type { ZenditProgress } from './zendit-purchase.js';
import { lookForRefund } from './zendit-refund.js';

const CALLS_AT_ONCE = 6;
const LOOKS = 5;
const LOOK_PAUSE_MS = 500;
const REFUSED = {
  code: 'provider_rejected',
  reason: 'The provider does not take back the eSIM.',
} as const;

/**
 * Refunds the purchases of an order. A refund is looked for before it is posted, so a repetition follows the first, and
 * none is posted twice in one call: what a repeated POST does is not documented.
 */
export class ZenditCancelling {
  constructor(private readonly api: ZenditApi) {}

  /** @throws ProviderOutcomeUnknown when a refund is still on its way: ask again, ProviderUnavailable */
  async cancel(request: ProviderCancelRequest, signal: AbortSignal): Promise<ProviderCancelState> {
    const ids = request.esims.map(({ providerEsimId }) => providerEsimId);
    const ends = await eachValue(ids, CALLS_AT_ONCE, (id) => this.refund(id, request.reference, signal));
    const canceledEsimIds = ids.filter((_, i) => ends[i] === 'done');
    if (canceledEsimIds.length === ids.length) return { state: 'canceled' };
    if (canceledEsimIds.length === 0) return { state: 'refused', failure: REFUSED };
    return { state: 'partly_canceled', canceledEsimIds, failure: REFUSED };
  }

  private async refund(
    transactionId: string,
    reference: string,
    signal: AbortSignal,
  ): Promise<ZenditProgress> {
    let progress =
      (await this.look(transactionId, signal)) ?? (await this.post(transactionId, reference, signal));
    for (let looks = 0; progress === 'running' && looks < LOOKS; looks++) {
      if (looks > 0) await pause(signal);
      progress = (await this.look(transactionId, signal)) ?? progress;
    }
    if (progress === 'running') throw new ProviderOutcomeUnknown();
    return progress;
  }

  private async post(transactionId: string, reference: string, signal: AbortSignal): Promise<ZenditProgress> {
    const answer = await this.api.postRefund(transactionId, reference, signal);
    if (answer.accepted) return answer.progress;
    // A refund that exists is refused like one that is not allowed.
    return (await this.look(transactionId, signal)) ?? 'failed';
  }

  private look(transactionId: string, signal: AbortSignal): Promise<ZenditProgress | null> {
    return lookForRefund(this.api, transactionId, signal);
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await delay(LOOK_PAUSE_MS, undefined, { signal });
  } catch (error) {
    throw new ProviderOutcomeUnknown(error);
  }
}
