import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import {
  callProvider,
  ProviderOutcomeUnknown,
  ProviderRegistry,
  ProviderUnavailable,
} from '../providers/index.js';
import type { Provisioned } from './end-order.js';
import { OrdersRepository } from './orders.repository.js';
import type { ReconcileAction } from './reconcile-order.js';
import { toProviderRequest } from './provider-order-request.js';

/** Looks an order up at its upstream, for support. Only asks, and outside any transaction (D16). */
@Injectable()
export class AskUpstream {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly providers: ProviderRegistry,
  ) {}

  /**
   * What the upstream has provisioned for a processing order; null when it names no eSIM.
   * @throws AppError `service_unavailable` when it does not answer or is not connected
   */
  private async findProvisioned(orderId: string): Promise<Provisioned | null> {
    const order = await this.orders.findById(orderId);
    if (order?.status !== 'processing') return null;
    const provider = this.providers.forMode(order.mode, order.provider);
    try {
      const request = toProviderRequest(order);
      const found = await callProvider(provider, (signal) => provider.findOrder(request, signal));
      return found?.state === 'provisioned' && found.profiles.length > 0 ? found : null;
    } catch (cause) {
      if (!(cause instanceof ProviderOutcomeUnknown || cause instanceof ProviderUnavailable)) throw cause;
      throw new AppError('service_unavailable', { detail: 'The upstream does not answer now.', cause });
    }
  }

  /**
   * What the upstream has provisioned, as far as the action needs to know it. One that is to be failed is asked for
   * too: what was bought may not be failed. There an upstream that does not answer leaves the decision to support.
   * @throws AppError `service_unavailable`
   */
  async findFor(action: ReconcileAction, orderId: string): Promise<Provisioned | null> {
    if (action === 'requery') return null;
    try {
      return await this.findProvisioned(orderId);
    } catch (error) {
      const isSilent = error instanceof AppError && error.code === 'service_unavailable';
      if (action === 'mark_failed' && isSilent) return null;
      throw error;
    }
  }
}
