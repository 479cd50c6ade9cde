import { Injectable } from '@nestjs/common';
import { CatalogService } from '../catalog/index.js';
import { newId, ulid } from '../common/ids.js';
import { type Money, multiplyMoney } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import { ProviderRegistry } from '../providers/index.js';
import { Wallet } from '../wallet/index.js';
import type { OrderEntity } from './order.js';
import { ORDER_JOBS } from './order-jobs.repository.js';
import { OrdersRepository } from './orders.repository.js';

export interface PlaceOrderCommand {
  readonly packageId: string;
  readonly quantity: number;
  readonly reference: string | null;
  readonly maxUnitPrice: Money | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly requestId: string;
}

/**
 * Accepts an order: one row, `pending`, with the reference that every provider call will use, the terms, price and cost
 * of this moment, and the hold on the wallet that pays for it (D19, D22, D27, D47).
 */
@Injectable()
export class PlaceOrder {
  constructor(
    private readonly catalog: CatalogService,
    private readonly providers: ProviderRegistry,
    private readonly orders: OrdersRepository,
    private readonly wallet: Wallet,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /**
   * @throws NotFound, AppError `package_unavailable`, `price_changed`, `reference_taken`, `insufficient_balance`,
   * `service_unavailable`
   */
  async execute(tx: Tx, scope: TenantScope, command: PlaceOrderCommand): Promise<OrderEntity> {
    const { partnerId, mode } = scope;
    const { packageId, quantity, reference } = command;
    const wanted = { partnerId, mode, id: packageId, kind: 'base', maxPrice: command.maxUnitPrice } as const;
    const item = await this.catalog.getSellable(tx, wanted);
    const { price, source } = item;
    const order = await this.orders.insert(tx, {
      id: newId('ord'),
      partnerId,
      mode,
      packageId: item.id,
      quantity,
      dataBytes: item.dataBytes,
      validityDays: item.validityDays,
      activationPolicy: item.activationPolicy,
      unitPriceAmount: price.amount,
      currency: price.currency,
      reference,
      metadata: { ...command.metadata },
      provider: this.providers.forMode(mode, source.provider).name,
      providerReference: `po_${ulid()}`,
      upstreamPackageId: source.upstreamPackageId,
      unitCostMicros: source.unitCost?.micros ?? null,
      unitCostCurrency: source.unitCost?.currency ?? null,
      acceptedRequestId: command.requestId,
    });
    // The order first, then its hold (D40): the wallet's row, which all orders share, is locked last and shortest.
    const money = multiplyMoney(price, quantity);
    await this.wallet.hold(tx, { partnerId, mode, money, subject: { orderId: order.id }, reference });
    tx.afterCommit(() => this.notifier.notify(partnerGroup(scope)));
    return order;
  }
}
