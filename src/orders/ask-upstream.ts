import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { AppError, NotFound } from '../common/errors/index.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { type EsimEntity, EsimsRepository, isUntouched } from '../esims/index.js';
import {
  askProvider,
  type EsimProvider,
  type ProviderCancelStatus,
  ProviderRegistry,
} from '../providers/index.js';
import type { OrderEntity } from './order.entity.js';
import { OrderEndingsRepository } from './order-endings.repository.js';
import { uncanceled } from './order-esims.js';
import { OrdersRepository } from './orders.repository.js';
import { toCancelRequest, toProviderRequest } from './provider-order-request.js';
import { notWaiting, type ReconcileAction, type UpstreamLook, type UpstreamWord } from './upstream-word.js';

type WaitingOrder = OrderEntity & { readonly status: 'processing' | 'canceling' };

/** Asks the provider about an order that support is to end. Only asks, and outside any transaction (D16). */
@Injectable()
export class AskUpstream {
  private readonly readLagMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly endings: OrderEndingsRepository,
    private readonly providers: ProviderRegistry,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    this.readLagMs = config.provisioning.providerReadLagMs;
  }

  /**
   * The provider's word for an action; null when the order does not wait for one, or a worker is asking right now.
   * Only issuing needs an answer; otherwise silence leaves support to decide.
   * @throws AppError `service_unavailable`
   */
  async askFor(action: ReconcileAction, orderId: string): Promise<UpstreamWord | null> {
    const order = action === 'requery' ? null : await this.orders.findById(orderId);
    if (!order || !isWaiting(order)) return null;
    const provider = this.providers.findByName(order.provider);
    const readLagMs = provider?.readLagMs ?? this.readLagMs;
    const fence = await this.endings.keepWorkersOff(orderId, order.status, readLagMs);
    if (fence === null) return null;
    const look = await this.lookAt(provider, order);
    if (look.about === 'processing' && look.parts === null && action === 'mark_issued')
      throw new AppError('service_unavailable', { detail: 'The upstream does not answer now.' });
    return { ...look, fence, readLagMs };
  }

  /** What the provider shows of an order, for support to read. @throws NotFound, AppError `conflict` */
  async look(orderId: string): Promise<{ readonly order: OrderEntity; readonly look: UpstreamLook }> {
    const order = await this.orders.findById(orderId);
    if (!order) throw new NotFound();
    if (!isWaiting(order)) throw notWaiting();
    return { order, look: await this.lookAt(this.providers.findByName(order.provider), order) };
  }

  private async lookAt(provider: EsimProvider | null, order: WaitingOrder): Promise<UpstreamLook> {
    if (order.status === 'canceling') {
      return {
        about: order.status,
        cancelStatuses: provider && (await this.findCancelStatuses(provider, order)),
      };
    }
    const request = toProviderRequest(order);
    const told = provider && (await askProvider(provider, (signal) => provider.findParts(request, signal)));
    return { about: order.status, parts: told?.answer ?? null };
  }

  private async findCancelStatuses(
    provider: EsimProvider,
    order: OrderEntity,
  ): Promise<readonly ProviderCancelStatus[] | null> {
    const esims = uncanceled(await this.esims.listByOrders(this.manager, [order.id]));
    const request = toCancelRequest(order, esims);
    const told = await askProvider(provider, (signal) => provider.findCancelStatuses(request, signal));
    return told && (order.mode === 'live' ? told.answer : withOurDevices(told.answer, esims));
  }
}

function isWaiting(order: OrderEntity): order is WaitingOrder {
  return order.status === 'processing' || order.status === 'canceling';
}

/** The device of a sandbox eSIM acts in our own store, where its provider does not look (D26). */
function withOurDevices(
  cancelStatuses: readonly ProviderCancelStatus[],
  esims: readonly EsimEntity[],
): readonly ProviderCancelStatus[] {
  const inUse = new Set(esims.filter((esim) => !isUntouched(esim)).map((esim) => esim.providerEsimId));
  return cancelStatuses.map((one) =>
    inUse.has(one.providerEsimId) ? { ...one, cancelStatus: 'in_use' } : one,
  );
}
