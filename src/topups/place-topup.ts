import { Injectable } from '@nestjs/common';
import { CatalogService, type SoldTopup } from '../catalog/index.js';
import { AppError } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { Money } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { type EsimEntity, EsimsRepository, takesTopups } from '../esims/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import { currentTraceparent } from '../infra/tracing/index.js';
import { SandboxQuota } from '../partners/index.js';
import { placementReference, ProviderRegistry } from '../providers/index.js';
import { Wallet } from '../wallet/index.js';
import type { TopupEntity } from './topup.js';
import { TOPUP_JOBS } from './topup-jobs.repository.js';
import { TopupsRepository } from './topups.repository.js';

export interface PlaceTopupCommand {
  readonly esimId: string;
  readonly packageId: string;
  /** Null for a package of fixed days, or for one day. */
  readonly days: number | null;
  readonly reference: string | null;
  readonly maxPrice: Money | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly requestId: string;
  readonly idempotencyKey: string | null;
  /** The key that buys, if it has a spend limit. */
  readonly limitedKeyId: string | null;
  /** The rule that buys automatically; null when the partner does. */
  readonly autoTopupId: string | null;
}

/** The part of a purchase that decides whether it is possible. */
export type WantedTopup = Pick<PlaceTopupCommand, 'esimId' | 'packageId' | 'days' | 'maxPrice'>;

/**
 * Accepts a top-up: one row with status `pending`, the reference of every provider call (D19), and a hold of its price
 * (D27).
 */
@Injectable()
export class PlaceTopup {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly catalog: CatalogService,
    private readonly providers: ProviderRegistry,
    private readonly topups: TopupsRepository,
    private readonly wallet: Wallet,
    private readonly sandboxQuota: SandboxQuota,
    @InjectNotifier(TOPUP_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /**
   * @throws NotFound, ValidationFailed, AppError `esim_expired`, `esim_not_ready`, `topup_not_supported`, `package_unavailable`,
   * `price_changed`, `reference_taken`, `spend_limit_reached`, `insufficient_balance`, `limit_reached`, `service_unavailable`
   */
  async place(tx: Tx, scope: TenantScope, command: PlaceTopupCommand): Promise<TopupEntity> {
    const { esim, item } = await this.check(tx, scope, command);
    const { price, source, days } = item;
    const topup = await this.topups.insert(tx, {
      id: newId('top'),
      partnerId: scope.partnerId,
      mode: scope.mode,
      esimId: esim.id,
      iccid: esim.iccid,
      packageId: item.id,
      days,
      priceAmount: price.amount,
      currency: price.currency,
      dataAddedBytes: item.dataBytes,
      validityAddedDays: item.validityDays,
      reference: command.reference,
      metadata: { ...command.metadata },
      provider: source.provider,
      providerReference: placementReference('topup', {
        ...scope,
        idempotencyKey: command.idempotencyKey,
        bought: [esim.iccid, item.id, ...(days === null || days === 1 ? [] : [days])],
      }),
      upstreamPackageId: source.upstreamPackageId,
      unitCostMicros: source.unitCost?.micros ?? null,
      unitCostCurrency: source.unitCost?.currency ?? null,
      acceptedRequestId: command.requestId,
      limitedKeyId: command.limitedKeyId,
      autoTopupId: command.autoTopupId,
      traceparent: currentTraceparent(),
    });
    await this.wallet.hold(tx, {
      partnerId: scope.partnerId,
      mode: scope.mode,
      money: price,
      subject: { topupId: topup.id },
      reference: command.reference,
      limitedKeyId: command.limitedKeyId,
    });
    this.sandboxQuota.take(scope, 1, command.metadata);
    tx.afterCommit(() => this.notifier.notify(partnerGroup(scope)));
    return topup;
  }

  /**
   * Checks that the top-up could be placed now, apart from the money. Keeps the eSIM's order from being canceled until
   * the end of `tx`.
   * @throws NotFound, ValidationFailed, AppError `esim_expired`, `esim_not_ready`, `topup_not_supported`,
   * `package_unavailable`, `price_changed`, `service_unavailable`
   */
  async check(
    tx: Tx,
    scope: TenantScope,
    wanted: WantedTopup,
  ): Promise<{ readonly esim: EsimEntity; readonly item: SoldTopup }> {
    // Locked before the eSIM is read, so that a top-up excludes a cancellation, a revocation and a replacement.
    const isCanceled = await this.topups.lockCancellation(tx, scope, wanted.esimId);
    const esim = await this.esims.getById(wanted.esimId, tx.manager);
    await this.assertTakesTopups(tx, esim);
    if (isCanceled) throw new AppError('esim_not_ready');
    const item = await this.catalog.getSellableTopup(tx, {
      partnerId: scope.partnerId,
      mode: scope.mode,
      id: wanted.packageId,
      baseId: esim.packageId,
      // Only the provider that issued an eSIM can top it up.
      provider: esim.provider,
      days: wanted.days,
      maxPrice: wanted.maxPrice,
    });
    await this.assertBelowMaximum(tx, esim.id, item.maxTopups);
    // A provider that is not connected could not be called: return 503 before holding anything.
    this.providers.nameForNew(scope.mode, item.source.provider);
    return { esim, item };
  }

  /** Locks the eSIM's row, so that concurrent top-ups count each other. */
  private async assertBelowMaximum(tx: Tx, esimId: string, max: number | null): Promise<void> {
    if (max === null) return;
    await this.esims.findByIdForUpdate(tx, esimId);
    if ((await this.topups.countOfEsim(tx, esimId)) < max) return;
    throw new AppError('topup_not_supported', {
      detail: `This eSIM has received its maximum of ${max} top-ups. Order another eSIM instead.`,
    });
  }

  private async assertTakesTopups(tx: Tx, esim: EsimEntity): Promise<void> {
    // The sweep may not have run yet: an ended eSIM takes no top-up (D23).
    const isExpired = esim.status === 'expired' || (await this.esims.hasEnded(tx, esim.id));
    if (isExpired) throw new AppError('esim_expired');
    if (!takesTopups(esim)) throw new AppError('esim_not_ready');
  }
}
