import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { AppError, NotFound } from '../common/errors/index.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { type EsimEntity, EsimsRepository, isUntouched } from '../esims/index.js';
import { runWithin } from '../infra/tracing/index.js';
import {
  canceledWith,
  type OrderEntity,
  OrderJobsRepository,
  OrdersRepository,
  toProviderCancelRequest,
  toProviderOrderRequest,
} from '../orders/index.js';
import {
  askProvider,
  type EsimProvider,
  type ProviderCancelStatus,
  ProviderRegistry,
} from '../providers/index.js';
import type { PurchaseVersion } from '../purchases/index.js';
import { type ProviderSnapshot, type ResolveOrderAction, undecidable } from './resolution-rules.js';

/** An order's state at its provider, and our version of it before the query. */
export interface InspectedOrder<Snapshot extends ProviderSnapshot = ProviderSnapshot> {
  readonly version: PurchaseVersion;
  readonly snapshot: Snapshot;
}

type WaitingOrder = OrderEntity & { readonly status: PurchaseVersion['status'] };

/** Looks an order up at its provider for support. Read-only, and outside any transaction (D16). */
@Injectable()
export class InspectProviderOrder {
  private readonly usualReadLagMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly orders: OrdersRepository,
    private readonly jobs: OrderJobsRepository,
    private readonly esims: EsimsRepository,
    private readonly providers: ProviderRegistry,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    this.usualReadLagMs = config.provisioning.providerReadLagMs;
  }

  /**
   * Null when no decision is possible: the order is not waiting for a result, a worker holds it, or the action is
   * `requery`. Only issuing needs the provider's response; without one, support may still decide otherwise.
   * @throws AppError `service_unavailable` for `mark_issued` without the provider's response
   */
  async inspectFor(action: ResolveOrderAction, orderId: string): Promise<InspectedOrder | null> {
    const order = action === 'requery' ? null : await this.orders.findById(orderId);
    if (!order || !isWaiting(order)) return null;
    const provider = this.providers.findByName(order.provider);
    const readLagMs = provider?.readLagMs ?? this.usualReadLagMs;
    const version = await this.jobs.deferRetries(orderId, order.status, readLagMs);
    if (version === null) return null;
    const snapshot = await this.lookUp(provider, order);
    if (snapshot.orderStatus === 'processing' && snapshot.parts === null && action === 'mark_issued')
      throw new AppError('service_unavailable', {
        detail: 'The wholesaler does not respond. Try again in a minute.',
      });
    return { version, snapshot };
  }

  /** The order's state at its provider, for display. @throws NotFound, AppError `conflict` */
  async inspect(
    orderId: string,
  ): Promise<{ readonly order: OrderEntity; readonly snapshot: ProviderSnapshot }> {
    const order = await this.orders.findById(orderId);
    if (!order) throw new NotFound();
    if (!isWaiting(order)) throw undecidable('order', order);
    return { order, snapshot: await this.lookUp(this.providers.findByName(order.provider), order) };
  }

  private lookUp(provider: EsimProvider | null, order: WaitingOrder): Promise<ProviderSnapshot> {
    return runWithin(null, { orderId: order.id }, () => this.ask(provider, order));
  }

  private async ask(provider: EsimProvider | null, order: WaitingOrder): Promise<ProviderSnapshot> {
    if (order.status === 'canceling') {
      const cancelStatuses = provider && (await this.findCancelStatuses(provider, order));
      return { orderStatus: order.status, cancelStatuses };
    }
    const request = toProviderOrderRequest(order);
    const told = provider && (await askProvider(provider, (signal) => provider.findParts(request, signal)));
    return { orderStatus: order.status, parts: told?.answer ?? null };
  }

  private async findCancelStatuses(
    provider: EsimProvider,
    order: OrderEntity,
  ): Promise<readonly ProviderCancelStatus[] | null> {
    const esims = canceledWith(await this.esims.listByOrders(this.manager, [order.id]));
    const request = toProviderCancelRequest(order, esims);
    const told = await askProvider(provider, (signal) => provider.findCancelStatuses(request, signal));
    return told && (order.mode === 'live' ? told.answer : withOurDevices(told.answer, esims));
  }
}

function isWaiting(order: OrderEntity): order is WaitingOrder {
  return order.status === 'processing' || order.status === 'canceling';
}

/** A sandbox eSIM's device lives in our own database, which its provider does not read (D26). */
function withOurDevices(
  cancelStatuses: readonly ProviderCancelStatus[],
  esims: readonly EsimEntity[],
): readonly ProviderCancelStatus[] {
  const inUse = new Set(esims.filter((esim) => !isUntouched(esim)).map((esim) => esim.providerEsimId));
  return cancelStatuses.map((one) =>
    inUse.has(one.providerEsimId) ? { ...one, cancelStatus: 'in_use' } : one,
  );
}
