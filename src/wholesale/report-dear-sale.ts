import { Injectable } from '@nestjs/common';
import { Alerts, type AlertType } from '../alerts/index.js';
import type { Tx } from '../infra/database/index.js';
import type { UpstreamCost } from '../providers/index.js';
import { DEAR_SALE_REST_MS, RefreshCatalog } from './refresh-catalog.js';

/** What was sold at the price of an earlier cost: an order or a top-up. */
export interface DearSale {
  readonly id: string;
  readonly partnerId: string;
  readonly provider: string;
  readonly packageId: string;
  readonly unitCostMicros: number | null;
  readonly createdAt: Date;
}

/** For an upstream that charged more than it listed: the money is ours, so a person hears of it (D27). */
@Injectable()
export class ReportDearSale {
  constructor(
    private readonly refreshCatalog: RefreshCatalog,
    private readonly alerts: Alerts,
  ) {}

  /** Has the list read again; one alert in ten minutes stands for all such sales of a wholesaler. */
  async execute(
    tx: Tx,
    type: Extract<AlertType, 'order.needs_review' | 'topup.needs_review'>,
    sale: DearSale,
    paid: UpstreamCost,
  ): Promise<void> {
    await this.refreshCatalog.afterDearSale(tx, sale.createdAt);
    const { id: subjectId, partnerId, provider, packageId, unitCostMicros } = sale;
    const alert = {
      type,
      partnerId,
      subjectId,
      details: {
        what: 'sold_dearer',
        provider,
        package_id: packageId,
        expected_micros: unitCostMicros,
        paid_micros: paid.micros,
        paid_currency: paid.currency,
      },
      onceKey: `sold_dearer:${provider}`,
    };
    await this.alerts.raiseUnlessWithin(tx, alert, DEAR_SALE_REST_MS);
  }
}
