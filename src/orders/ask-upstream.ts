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
  async findProvisioned(orderId: string): Promise<Provisioned | null> {
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
   * For an order that support is about to fail: what the upstream has provisioned may not be failed. An upstream that
   * does not answer leaves the decision to support.
   * @throws AppError `conflict` when the upstream names eSIMs of the order
   */
  async assertNothingProvisioned(orderId: string): Promise<void> {
    const found = await this.findProvisioned(orderId).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'service_unavailable') return null;
      throw error;
    });
    if (found) throw new AppError('conflict', { detail: 'The upstream has provisioned it: mark it issued.' });
  }
}
