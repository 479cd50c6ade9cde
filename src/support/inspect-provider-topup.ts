import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { EsimsRepository } from '../esims/index.js';
import { runWithin } from '../infra/tracing/index.js';
import {
  askProvider,
  EsimPurchasesRepository,
  type EsimProvider,
  ProviderRegistry,
} from '../providers/index.js';
import type { PurchaseVersion } from '../purchases/index.js';
import {
  type TopupEntity,
  TopupJobsRepository,
  TopupsRepository,
  toProviderTopupRequest,
} from '../topups/index.js';
import type { ProviderState, ResolveTopupAction } from './resolution-rules.js';

/** A top-up's state at its provider, and our version of it before the query. */
export interface InspectedTopup {
  readonly version: PurchaseVersion;
  readonly state: ProviderState;
}

/** Looks a top-up up at its provider for support. Read-only, and outside any transaction (D16). */
@Injectable()
export class InspectProviderTopup {
  private readonly usualReadLagMs: number;

  constructor(
    private readonly topups: TopupsRepository,
    private readonly jobs: TopupJobsRepository,
    private readonly esims: EsimsRepository,
    private readonly providers: ProviderRegistry,
    private readonly purchases: EsimPurchasesRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    this.usualReadLagMs = config.provisioning.providerReadLagMs;
  }

  /** Null when no decision is possible: the top-up is not processing, a worker holds it, or the action is `requery`. */
  async inspectFor(action: ResolveTopupAction, topupId: string): Promise<InspectedTopup | null> {
    const topup = action === 'requery' ? null : await this.topups.findById(topupId);
    if (!topup) return null;
    const provider = this.providers.findByName(topup.provider);
    const version = await this.jobs.deferRetries(
      topupId,
      'processing',
      provider?.readLagMs ?? this.usualReadLagMs,
    );
    if (version === null) return null;
    const lookUp = () => this.lookUp(provider, topup, version);
    return { version, state: await runWithin(null, { topupId }, lookUp) };
  }

  private async lookUp(
    provider: EsimProvider | null,
    topup: TopupEntity,
    version: PurchaseVersion,
  ): Promise<ProviderState> {
    if (version.placedAt === null) return { state: 'not_applied' };
    // During its read lag, the provider may not show an applied top-up yet.
    if (version.lagLeftMs > 0) return { state: 'too_early' };
    if (!provider) return { state: 'silent' };
    const esim = await this.esims.getById(topup.esimId);
    const request = toProviderTopupRequest(topup, esim, this.purchases);
    const told = await askProvider(provider, (signal) => provider.findTopup(request, signal));
    if (!told) return { state: 'silent' };
    if (told.answer) return told.answer;
    // A denial proves nothing after two placements: support has the provider's bill and decides (B11).
    const isPlacedTwice = await this.purchases.isPlacedTwice(topup.providerReference);
    return { state: isPlacedTwice ? 'silent' : 'not_applied' };
  }
}
