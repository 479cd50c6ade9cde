import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { EsimsRepository } from '../esims/index.js';
import {
  askProvider,
  EsimPurchasesRepository,
  type EsimProvider,
  ProviderRegistry,
  type ProviderTopupState,
} from '../providers/index.js';
import { toProviderRequest } from './provider-topup-request.js';
import type { ReconcileAction } from './reconcile-action.js';
import type { TopupEntity } from './topup.entity.js';
import { TopupEndingsRepository, type TopupSighting } from './topup-endings.repository.js';
import { TopupsRepository } from './topups.repository.js';

/** What is known of a top-up at the provider. Support decides only when it is `silent`, whatever the reason. */
export type UpstreamWord =
  | ProviderTopupState
  | { readonly state: 'not_applied' }
  | { readonly state: 'silent' }
  | { readonly state: 'too_early' };

/** What the provider said, and how the top-up stood before it was asked. */
export interface HeardUpstream {
  readonly seen: TopupSighting;
  readonly word: UpstreamWord;
}

/** Looks a top-up up at its provider, for support. Only asks, and outside any transaction (D16). */
@Injectable()
export class HearUpstream {
  private readonly usualReadLagMs: number;

  constructor(
    private readonly topups: TopupsRepository,
    private readonly endings: TopupEndingsRepository,
    private readonly esims: EsimsRepository,
    private readonly providers: ProviderRegistry,
    private readonly purchases: EsimPurchasesRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    this.usualReadLagMs = config.provisioning.providerReadLagMs;
  }

  /** Null where nothing may be decided: the top-up is not processing, or a worker is at it; nor is `requery` one. */
  async hearFor(action: ReconcileAction, topupId: string): Promise<HeardUpstream | null> {
    const topup = action === 'requery' ? null : await this.topups.findById(topupId);
    if (!topup) return null;
    const provider = this.providers.findByName(topup.provider);
    const seen = await this.endings.keepWorkersOff(topupId, provider?.readLagMs ?? this.usualReadLagMs);
    return seen && { seen, word: await this.hear(topup, provider, seen) };
  }

  private async hear(
    topup: TopupEntity,
    provider: EsimProvider | null,
    seen: TopupSighting,
  ): Promise<UpstreamWord> {
    if (seen.placedAt === null) return { state: 'not_applied' };
    // Within its read lag the provider may deny what it has applied.
    if (seen.withinReadLag) return { state: 'too_early' };
    if (!provider) return { state: 'silent' };
    const esim = await this.esims.getById(topup.esimId);
    const request = toProviderRequest(topup, esim, this.purchases);
    const told = await askProvider(provider, (signal) => provider.findTopup(request, signal));
    if (!told) return { state: 'silent' };
    if (told.answer) return told.answer;
    // A list that denies what was placed twice proves nothing: support has the provider's bill, and decides (B11).
    const isPlacedTwice = await this.purchases.isPlacedTwice(topup.providerReference);
    return { state: isPlacedTwice ? 'silent' : 'not_applied' };
  }
}
