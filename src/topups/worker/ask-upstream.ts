import { Injectable } from '@nestjs/common';
import type { EsimEntity } from '../../esims/index.js';
import {
  callProvider,
  type EsimProvider,
  EsimPurchasesRepository,
  type Placement,
  ProviderRegistry,
  type ProviderTopupRequest,
  type ProviderTopupState,
  ProviderUnavailable,
} from '../../providers/index.js';
import { toProviderRequest } from '../provider-topup-request.js';
import type { TopupEntity } from '../topup.entity.js';
import { type TopupLease, TopupJobsRepository } from '../topup-jobs.repository.js';

/**
 * Gets the provider's word on a top-up without ever buying it twice. Not every provider takes a repeated reference
 * for the same top-up, so a placement is noted before it leaves; once one may have left, the provider is asked, and
 * only a denial that outlives its read lag is believed (D19, D22).
 */
@Injectable()
export class AskUpstream {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly queue: TopupJobsRepository,
    private readonly purchases: EsimPurchasesRepository,
  ) {}

  /**
   * Null when the lease is void: then nothing has left.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable
   */
  async execute(lease: TopupLease, topup: TopupEntity, esim: EsimEntity): Promise<ProviderTopupState | null> {
    const provider = this.providers.getByName(topup.provider);
    const request = toProviderRequest(topup, esim, this.purchases);
    if (topup.upstreamPlacedAt === null) return this.place(lease, topup, provider, request, 'first');
    const found = await callProvider(provider, (signal) => provider.findTopup(request, signal));
    if (found) return found;
    const lagLeftMs = await this.queue.readLagLeftMs(topup.id, provider.readLagMs);
    if (lagLeftMs > 0) return { state: 'in_progress', checkAfterMs: lagLeftMs };
    return this.place(lease, topup, provider, request, 'again');
  }

  private async place(
    lease: TopupLease,
    topup: TopupEntity,
    provider: EsimProvider,
    request: ProviderTopupRequest,
    placement: Placement,
  ): Promise<ProviderTopupState | null> {
    const notedAfter = await this.queue.recordPlacement(lease);
    if (notedAfter === null) return null;
    try {
      return await callProvider(
        provider,
        (signal) => provider.placeTopup(request, placement, signal),
        notedAfter,
      );
    } catch (error) {
      if (error instanceof ProviderUnavailable) await this.queue.undoPlacement(lease, topup.upstreamPlacedAt);
      else await this.queue.prolongPlacement(lease);
      throw error;
    }
  }
}
