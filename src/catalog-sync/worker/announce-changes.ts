import { Injectable } from '@nestjs/common';
import { CatalogChanges, CatalogChangesRepository } from '../../catalog/index.js';
import { EventRecorder, type NewEvent } from '../../events/index.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import { PartnersRepository } from '../../partners/index.js';
import { CatalogSyncsRepository } from '../catalog-syncs.repository.js';

/** Partners per transaction. */
const BATCH = 200;

/**
 * Records one `catalog.changed` per synchronization and active partner (D58). Each transaction also notes the last
 * partner that has its event, so a worker that dies repeats none and skips none.
 */
@Injectable()
export class AnnounceChanges {
  constructor(
    private readonly syncs: CatalogSyncsRepository,
    private readonly log: CatalogChangesRepository,
    private readonly changes: CatalogChanges,
    private readonly partners: PartnersRepository,
    private readonly events: EventRecorder,
    private readonly transactions: Transactions,
  ) {}

  /** Announces everything that waits. */
  async run(stopping?: AbortSignal): Promise<void> {
    while (!stopping?.aborted && (await this.transactions.run((tx) => this.announceSome(tx))));
  }

  /** Returns whether a synchronization was waiting. */
  private async announceSome(tx: Tx): Promise<boolean> {
    const sync = await this.syncs.lockUnannounced(tx);
    if (sync === null) return false;
    const counts = await this.log.countBetween(tx, 'live', sync.after, sync.upTo);
    const hasChanges = Object.values(counts).some((count) => count > 0);
    const ids = hasChanges ? await this.partners.listActiveIds(tx, sync.announcedTo, BATCH) : [];
    const happenedAt = await databaseNow(tx);
    const events = ids.map((partnerId): NewEvent => {
      const scope = { partnerId, mode: 'live' } as const;
      const data = { changes_url: this.changes.urlAfter(scope, sync.after), ...counts };
      return { type: 'catalog.changed', ...scope, happenedAt, data };
    });
    await this.events.record(tx, events);
    await this.syncs.noteAnnounced(tx, sync.id, ids.length === BATCH ? ids.at(-1)! : null);
    return true;
  }
}
