import { Injectable } from '@nestjs/common';
import { CatalogService } from '../catalog/index.js';
import { newId, ulid } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type { Money } from '../common/money.js';
import type { Tx } from '../infra/database/index.js';
import { InjectWakeUps, WakeUps } from '../infra/queue/index.js';
import { ProviderRegistry } from '../providers/index.js';
import type { OrderEntity } from './order.entity.js';
import { ORDER_WAKE_UPS } from './order-queue.js';
import { OrdersRepository } from './orders.repository.js';

export interface PlaceOrderCommand {
  readonly packageId: string;
  readonly quantity: number;
  readonly reference: string | null;
  readonly maxUnitPrice: Money | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly requestId: string;
}

export interface Buyer {
  readonly partnerId: string;
  readonly mode: Mode;
}

/** Accepts an order: one row, `pending`, with the reference that every upstream call will use (D19, D22). */
@Injectable()
export class PlaceOrder {
  constructor(
    private readonly catalog: CatalogService,
    private readonly providers: ProviderRegistry,
    private readonly orders: OrdersRepository,
    @InjectWakeUps(ORDER_WAKE_UPS) private readonly wakeUps: WakeUps,
  ) {}

  /** @throws NotFound, AppError `package_unavailable`, `price_changed`, `reference_taken` */
  async execute(tx: Tx, buyer: Buyer, command: PlaceOrderCommand): Promise<OrderEntity> {
    const item = await this.catalog.getSellable(tx, {
      mode: buyer.mode,
      id: command.packageId,
      kind: 'base',
      maxPrice: command.maxUnitPrice,
    });
    const provider = this.providers.forMode(buyer.mode);
    const order = await this.orders.insert(tx, {
      id: newId('ord'),
      partnerId: buyer.partnerId,
      mode: buyer.mode,
      packageId: item.id,
      quantity: command.quantity,
      unitPriceAmount: item.priceAmount,
      currency: item.currency,
      reference: command.reference,
      metadata: { ...command.metadata },
      provider: provider.name,
      providerReference: `po_${ulid()}`,
      acceptedRequestId: command.requestId,
    });
    tx.afterCommit(() => this.wakeUps.request(buyer.partnerId));
    return order;
  }
}
