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
import { type TopupEntity, toProviderTopupRequest } from '../topup.js';
import { type TopupLease, TopupJobsRepository } from '../topup-jobs.repository.js';

/**
 * Gets the provider's answer to a top-up without ever buying it twice. Not every provider takes a repeated reference
 * for the same top-up, so a placement is recorded before it is sent; once one may have been, the top-up is looked for
 * before it is placed again, and only a denial that outlives the read lag is believed (D19, D22).
 */
@Injectable()
export class FindOrPlaceTopup {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly jobs: TopupJobsRepository,
    private readonly purchases: EsimPurchasesRepository,
  ) {}

  /**
   * Null when the lease is void: then nothing was sent.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable
   */
  async execute(lease: TopupLease, topup: TopupEntity, esim: EsimEntity): Promise<ProviderTopupState | null> {
    const provider = this.providers.getByName(topup.provider);
    const request = toProviderTopupRequest(topup, esim, this.purchases);
    if (topup.upstreamPlacedAt === null) return this.place(lease, topup, provider, request, 'first');
    const found = await callProvider(provider, (signal) => provider.findTopup(request, signal));
    return found ?? this.place(lease, topup, provider, request, 'again');
  }

  private async place(
    lease: TopupLease,
    topup: TopupEntity,
    provider: EsimProvider,
    request: ProviderTopupRequest,
    placement: Placement,
  ): Promise<ProviderTopupState | null> {
    const slot = await this.jobs.markPlaced(lease, provider.readLagMs);
    if (slot === null) return null;
    if (slot.waitMs > 0) return { state: 'in_progress', checkAfterMs: slot.waitMs };
    try {
      return await callProvider(
        provider,
        (signal) => provider.placeTopup(request, placement, signal),
        slot.sendWindowStart,
      );
    } catch (error) {
      if (error instanceof ProviderUnavailable) await this.jobs.clearPlacement(lease, topup.upstreamPlacedAt);
      else await this.jobs.touchPlacement(lease);
      throw error;
    }
  }
}
