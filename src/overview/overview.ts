import { Injectable } from '@nestjs/common';
import type { TenantScope } from '../common/tenant-scope.js';
import { type BalanceStep, type WalletEntity, WalletsRepository } from '../wallet/index.js';
import { EndpointStatsRepository } from '../webhooks/index.js';
import { ActivityRepository, type Period } from './activity.repository.js';

/** Windows of the overview: number of steps and length of one step. */
export const OVERVIEW_WINDOWS = {
  '24h': { buckets: 24, stepSeconds: 3_600 },
  '7d': { buckets: 7, stepSeconds: 86_400 },
  '30d': { buckets: 30, stepSeconds: 86_400 },
} as const;
export type OverviewWindow = keyof typeof OVERVIEW_WINDOWS;

/** Spending varies with the weekday, so the average covers a whole week. */
const AVERAGE_DAYS = 7;

/** The steps of a period, oldest first, and those of the period before. */
export interface Series<T> {
  readonly current: readonly T[];
  readonly previous: readonly T[];
}

export interface OrderStep {
  readonly at: Date;
  readonly orders: number;
  readonly failed: number;
  /** In the currency of the figures, in minor units. */
  readonly cost: number;
}

export interface OrderFigures {
  /** The currency with the highest number of orders; null without orders. */
  readonly currency: string | null;
  readonly series: Series<OrderStep>;
}

export interface DeliveryStep {
  readonly at: Date;
  readonly delivered: number;
  readonly failed: number;
}

export interface WalletFigures {
  readonly wallet: WalletEntity;
  /** Minor units. */
  readonly averagePerDay: number;
  readonly history: readonly BalanceStep[];
}

/** The figures of the portal's first screen, from roll-ups. */
@Injectable()
export class Overview {
  constructor(
    private readonly activity: ActivityRepository,
    private readonly deliveries: EndpointStatsRepository,
    private readonly wallets: WalletsRepository,
  ) {}

  /** The window's period and the one before, which every series of one response covers. */
  async periodOf(window: OverviewWindow): Promise<Period> {
    const { buckets, stepSeconds } = OVERVIEW_WINDOWS[window];
    return this.activity.periodOf(buckets, stepSeconds);
  }

  /** Orders by the time of their acceptance; `cost` includes top-ups. */
  async ordersOf(scope: TenantScope, period: Period): Promise<OrderFigures> {
    const found = await this.activity.listSince(scope, period);
    const byCurrency = [...Map.groupBy(found, ({ currency }) => currency)].map(([currency, rows]) => ({
      currency,
      orders: rows.reduce((sum, { orders }) => sum + orders, 0),
    }));
    const currency = byCurrency.toSorted((a, b) => b.orders - a.orders)[0]?.currency ?? null;
    const byTime = Map.groupBy(found, ({ at }) => at.getTime());
    const series = seriesOf(period, (at): OrderStep => {
      const step = { orders: 0, failed: 0, cost: 0 };
      for (const row of byTime.get(at.getTime()) ?? []) {
        step.orders += row.orders;
        step.failed += row.failed;
        if (row.currency === currency) step.cost += row.cost;
      }
      return { at, ...step };
    });
    return { currency, series };
  }

  async deliveriesOf(scope: TenantScope, period: Period): Promise<Series<DeliveryStep>> {
    const found = await this.deliveries.listDeliveriesOf(scope, period.from, period.stepSeconds);
    const byTime = new Map(found.map((step) => [step.at.getTime(), step]));
    return seriesOf(period, (at) => ({ delivered: 0, failed: 0, ...byTime.get(at.getTime()), at }));
  }

  /** The wallet in this currency, otherwise the first one; null if the partner has none. Money exists only in Live. */
  async walletOf(
    partnerId: string,
    currency: string | null,
    { buckets, stepSeconds }: Period,
  ): Promise<WalletFigures | null> {
    const wallets = await this.wallets.listByPartner(partnerId);
    const wallet = wallets.find((each) => each.currency === currency) ?? wallets[0];
    if (!wallet) return null;
    return {
      wallet,
      averagePerDay: await this.wallets.getDailySpending(wallet, AVERAGE_DAYS),
      history: await this.wallets.listBalances(wallet, buckets, stepSeconds),
    };
  }
}

function seriesOf<T>({ from, buckets, stepSeconds }: Period, stepAt: (at: Date) => T): Series<T> {
  const steps = Array.from({ length: buckets * 2 }, (_, nth) =>
    stepAt(new Date(from.getTime() + nth * stepSeconds * 1_000)),
  );
  return { previous: steps.slice(0, buckets), current: steps.slice(buckets) };
}
