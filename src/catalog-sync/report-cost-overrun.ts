import { Injectable } from '@nestjs/common';
import { Alerts, type AlertType } from '../alerts/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderCost } from '../providers/index.js';
import { COST_OVERRUN_COOLDOWN_MS, RefreshCatalog } from './refresh-catalog.js';

/** What was sold at the price of an earlier cost: an order or a top-up. */
export interface CostOverrun {
  readonly id: string;
  readonly partnerId: string;
  readonly provider: string;
  readonly packageId: string;
  readonly unitCostMicros: number | null;
  readonly createdAt: Date;
}

/** For a provider that charged more than it listed: the money is ours, so a person hears of it (D27). */
@Injectable()
export class ReportCostOverrun {
  constructor(
    private readonly refreshCatalog: RefreshCatalog,
    private readonly alerts: Alerts,
  ) {}

  /** Has the list read again; one alert in ten minutes stands for all such sales of a provider. */
  async execute(
    tx: Tx,
    type: Extract<AlertType, 'order.needs_review' | 'topup.needs_review'>,
    sale: CostOverrun,
    paid: ProviderCost,
  ): Promise<void> {
    await this.refreshCatalog.afterCostOverrun(tx, sale.createdAt);
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
    await this.alerts.raiseUnlessWithin(tx, alert, COST_OVERRUN_COOLDOWN_MS);
  }
}
