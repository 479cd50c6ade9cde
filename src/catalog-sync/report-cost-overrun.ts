import { Injectable } from '@nestjs/common';
import { Alerts, type AlertType } from '../alerts/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderCost } from '../providers/index.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';
import { TopupFitsRepository } from './topup-fits.repository.js';

/** A provider whose bills always differ from its list gives no rest by itself. */
const COST_OVERRUN_COOLDOWN_MS = 600_000;

/** Has the live catalogue read again when a provider's refusal shows that it is out of date (docs/providers.md). */
@Injectable()
export class RefreshCatalog {
  constructor(
    private readonly syncs: CatalogSyncsRepository,
    private readonly fits: TopupFitsRepository,
  ) {}

  /**
   * For a sale at `soldAt` whose price the provider has refused. What was begun after the sale has read the new price:
   * a hundred refused orders make one synchronisation.
   */
  async execute(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt);
  }

  /** As `execute`, for a top-up: a provider may tell its price only where it is asked what fits an eSIM. */
  async ofTopup(tx: Tx, packageId: string, soldAt: Date): Promise<void> {
    await this.fits.wantAgain(tx, packageId);
    await this.execute(tx, soldAt);
  }

  /**
   * For a sale that went through at a higher cost than listed. A provider whose bills always differ from its list
   * must not have it read without end, so once in ten minutes is enough.
   */
  async afterCostOverrun(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt, COST_OVERRUN_COOLDOWN_MS);
  }
}

/** What was sold at the price of an earlier cost: an order or a top-up. */
interface CostOverrun {
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
