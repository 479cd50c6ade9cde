import { Inject, Injectable } from '@nestjs/common';
import { assertSold, CatalogService, type SellablePackage } from '../catalog/index.js';
import { newId } from '../common/ids.js';
import { type Money, multiplyMoney } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, type Reservation, WorkerNotifier } from '../infra/jobs/index.js';
import { currentTraceparent } from '../infra/tracing/index.js';
import { SandboxQuota } from '../partners/index.js';
import { placementReference, ProviderRegistry } from '../providers/index.js';
import { bornClaimed, type ClaimedPurchase } from '../purchases/index.js';
import { Wallet } from '../wallet/index.js';
import { OrderEntity } from './order.js';
import { ORDER_JOBS } from './order-jobs.repository.js';
import { OrdersRepository } from './orders.repository.js';

export interface PlaceOrderCommand {
  readonly packageId: string;
  readonly quantity: number;
  /** Of each eSIM; null for a package of fixed days, or for one day. */
  readonly days: number | null;
  readonly reference: string | null;
  readonly maxUnitPrice: Money | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly requestId: string;
  readonly idempotencyKey: string | null;
  /** The key that buys, if it has a spend limit. */
  readonly limitedKeyId: string | null;
}

/**
 * Accepts an order: one row with status `pending`, the reference of every provider call, the current terms, price and
 * cost, and the wallet hold that pays for it (D19, D22, D27, D47).
 */
@Injectable()
export class PlaceOrder {
  constructor(
    private readonly catalog: CatalogService,
    private readonly providers: ProviderRegistry,
    private readonly orders: OrdersRepository,
    private readonly wallet: Wallet,
    private readonly sandboxQuota: SandboxQuota,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'leaseMs'>,
  ) {}

  /** The order's package, read together with the claim of its Idempotency-Key and passed to `place`. */
  findPackage(tx: Tx, scope: TenantScope, { packageId }: PlaceOrderCommand): Promise<SellablePackage | null> {
    return this.catalog.findSellable(tx, scope, packageId);
  }

  /**
   * @throws NotFound, ValidationFailed, AppError `package_unavailable`, `price_changed`, `reference_taken`, `spend_limit_reached`, `insufficient_balance`,
   * `limit_reached`, `service_unavailable`
   */
  async place(
    tx: Tx,
    scope: TenantScope,
    command: PlaceOrderCommand,
    found: SellablePackage | null,
  ): Promise<OrderEntity> {
    const { partnerId, mode } = scope;
    const { quantity, reference, idempotencyKey, limitedKeyId } = command;
    const item = assertSold(found, {
      kind: 'base',
      days: command.days,
      maxPrice: command.maxUnitPrice,
    });
    const { price, source, days } = item;
    this.sandboxQuota.take(scope, quantity, command.metadata);
    const id = newId('ord');
    const bought = [item.id, quantity, ...(days === null || days === 1 ? [] : [days])];
    const inserted = this.insert(tx, {
      id,
      partnerId,
      mode,
      packageId: item.id,
      quantity,
      days,
      dataBytes: item.dataBytes,
      validityDays: item.validityDays,
      activationPolicy: item.activationPolicy,
      installWithinDays: item.installWithinDays,
      unitPriceAmount: price.amount,
      currency: price.currency,
      replaces: null,
      reference,
      metadata: { ...command.metadata },
      provider: this.providers.nameForNew(mode, source.provider),
      providerReference: placementReference('order', { partnerId, mode, idempotencyKey, bought }),
      upstreamPackageId: source.upstreamPackageId,
      unitCostMicros: source.unitCost?.micros ?? null,
      unitCostCurrency: source.unitCost?.currency ?? null,
      acceptedRequestId: command.requestId,
      limitedKeyId,
      traceparent: currentTraceparent(),
    });
    // The order precedes its hold (D40): the wallet's row, shared by all orders, is locked last and for the shortest
    // time.
    const money = multiplyMoney(price, quantity);
    const subject = { orderId: id };
    const held = this.wallet.hold(tx, { partnerId, mode, money, subject, reference, limitedKeyId });
    const [order] = await Promise.all([inserted, held]);
    return order;
  }

  /**
   * Inserts the order. If this process's worker has a free slot, a Sandbox order is inserted as claimed, and handed over
   * after the commit. Live orders wait for a claim, which a worker of any process may win.
   * @returns the order as accepted: pending
   */
  private async insert(tx: Tx, order: Parameters<OrdersRepository['insert']>[1]): Promise<OrderEntity> {
    const group = partnerGroup(order);
    const sendWindowStart = performance.now();
    const slot: Reservation<ClaimedPurchase<OrderEntity>> | null =
      order.mode === 'sandbox' ? this.notifier.reserve(group) : null;
    if (!slot) {
      tx.afterCommit(() => this.notifier.notify(group));
      return this.orders.insert(tx, order);
    }
    let claimed: OrderEntity | null = null;
    // Registered before the statement: the slot is released whatever its result.
    tx.afterCommit(
      () => slot.begin(bornClaimed(claimed!, sendWindowStart)),
      () => slot.giveBack(),
    );
    claimed = await this.orders.insertClaimed(tx, order, this.config.leaseMs);
    return Object.assign(new OrderEntity(), claimed, { status: 'pending', version: 1 });
  }
}
