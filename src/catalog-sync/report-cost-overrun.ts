import { Injectable } from '@nestjs/common';
import { Alerts, type AlertType } from '../alerts/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderCost } from '../providers/index.js';
import { CatalogSyncsRepository } from './catalog-syncs.repository.js';
import { TopupFitsRepository } from './topup-fits.repository.js';

/** Limits refreshes for a provider whose bills always differ from its list. */
const COST_OVERRUN_COOLDOWN_MS = 600_000;

/**
 * Requests a new synchronization when a provider's refusal shows that the live catalog is out of date
 * (docs/providers.md).
 */
@Injectable()
export class RefreshCatalog {
  constructor(
    private readonly syncs: CatalogSyncsRepository,
    private readonly fits: TopupFitsRepository,
  ) {}

  /**
   * For a sale at `soldAt` whose price the provider has refused. A synchronization begun after the sale has read the
   * new price: a hundred refused orders cause one synchronization.
   */
  async refresh(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt);
  }

  /** Same for a top-up, whose price the provider may reveal only in its list of fitting top-ups. */
  async ofTopup(tx: Tx, packageId: string, soldAt: Date): Promise<void> {
    await this.fits.wantAgain(tx, packageId);
    await this.refresh(tx, soldAt);
  }

  /**
   * For a sale that went through above the listed cost. At most one synchronization in ten minutes, because a
   * provider's bills may always differ from its list.
   */
  async afterCostOverrun(tx: Tx, soldAt: Date): Promise<void> {
    await this.syncs.requestUnlessBegunSince(tx, soldAt, COST_OVERRUN_COOLDOWN_MS);
  }
}

/** An order or top-up sold at an outdated cost. */
interface CostOverrun {
  readonly id: string;
  readonly partnerId: string;
  readonly provider: string;
  readonly packageId: string;
  readonly unitCostMicros: number | null;
  readonly createdAt: Date;
}

/** Reports a provider that charged more than it listed: we bear the loss, so support is alerted (D27). */
@Injectable()
export class ReportCostOverrun {
  constructor(
    private readonly refreshCatalog: RefreshCatalog,
    private readonly alerts: Alerts,
  ) {}

  /** Requests a synchronization; one alert in ten minutes covers all such sales of a provider. */
  async report(
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
