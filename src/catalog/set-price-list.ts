import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { PartnersService } from '../partners/index.js';
import { CatalogChangesRepository } from './catalog-changes.repository.js';
import type { PriceList } from './price-list.js';
import { PriceListsRepository } from './price-lists.repository.js';

/** Sets a partner's prices of live packages, effective from the next call; accepted orders keep their price. */
@Injectable()
export class SetPriceList {
  constructor(
    private readonly partners: PartnersService,
    private readonly lists: PriceListsRepository,
    private readonly changes: CatalogChangesRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound */
  async set(
    tx: Tx,
    by: ChangeAuthor,
    partnerId: string,
    list: Pick<PriceList, 'marginBps' | 'prices'>,
  ): Promise<PriceList> {
    await this.partners.getById(partnerId, tx);
    const stored = await this.lists.replace(tx, partnerId, list);
    await this.changes.recordPriceList(tx, partnerId);
    await this.audit.record(tx, {
      ...by,
      action: 'price_list.replaced',
      partnerId,
      subjectId: partnerId,
      details: { margin_bps: list.marginBps, prices: Object.keys(list.prices).length },
    });
    return stored;
  }
}
