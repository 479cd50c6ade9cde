import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { CursorCodec } from '../infra/crypto/index.js';
import {
  CatalogChangesRepository,
  EVERY_PACKAGE,
  type LoggedChange,
  type LogPlace,
} from './catalog-changes.repository.js';
import type { PackageEntity } from './package.entity.js';
import { CatalogSnapshots, type PartnerCatalog, PartnerCatalogs } from './partner-catalogs.js';

export interface ChangesPage {
  readonly items: readonly LoggedChange[];
  readonly hasMore: boolean;
  /** Always present: a poller stores it even when the page is empty. */
  readonly nextCursor: string;
}

const EXPIRED_CURSOR =
  'The changes after this cursor are no longer all kept. Copy GET /v1/catalog again, and start without `after`.';

/**
 * GET /v1/catalog/changes: changes of a partner's catalog, oldest first. A listed change is shown by every process, so
 * that a caller who then fetches the package receives the changed one.
 */
@Injectable()
export class CatalogChanges {
  constructor(
    private readonly log: CatalogChangesRepository,
    private readonly snapshots: CatalogSnapshots,
    private readonly catalogs: PartnerCatalogs,
    private readonly cursors: CursorCodec,
  ) {}

  /**
   * Waits until every process shows the changes that have been committed, if no older one follows the cursor.
   * @throws AppError `invalid_cursor`
   */
  async settle(scope: TenantScope, after: string | undefined): Promise<void> {
    const start = this.placeOf(scope, after)?.position ?? 0;
    await this.catalogs.get(scope);
    for (;;) {
      const { position, nextInMs } = this.snapshots.settledLog(scope.mode);
      if (nextInMs === null || (position !== null && position > start)) return;
      await sleep(Math.max(1, nextInMs));
    }
  }

  /** @throws AppError `invalid_cursor`, also for a cursor whose changes are no longer all kept */
  async list(scope: TenantScope, after: string | undefined, limit: number): Promise<ChangesPage> {
    const catalog = await this.catalogs.get(scope);
    const start = this.placeOf(scope, after);
    const { position, nextInMs } = this.snapshots.settledLog(scope.mode);
    const upTo = position ?? 0;
    const { keptAfter, changes: logged } = await this.log.list(scope, start, upTo, limit + 1);
    const isPurged =
      start !== null &&
      (start.position < keptAfter || (start.position === keptAfter && start.packageId !== EVERY_PACKAGE));
    if (isPurged) throw new AppError('invalid_cursor', { detail: EXPIRED_CURSOR });
    const found = firstOf(changesOf(catalog, logged, start), limit + 1);
    const items = found.slice(0, limit);
    const lastRead = found.length > limit ? items.at(-1) : logged.length > limit ? logged.at(-1) : undefined;
    const end = lastRead ?? endOf(Math.max(upTo, keptAfter), start);
    return {
      items,
      hasMore: lastRead !== undefined || nextInMs !== null,
      nextCursor: this.cursors.encode([end.position, end.packageId], cursorScope(scope)),
    };
  }

  /** Path and query of the call that lists the changes after a position of the log. */
  urlAfter(scope: TenantScope, position: number): string {
    const cursor = this.cursors.encode([position, EVERY_PACKAGE], cursorScope(scope));
    return `/v1/catalog/changes?after=${cursor}`;
  }

  private placeOf(scope: TenantScope, cursor: string | undefined): LogPlace | null {
    if (cursor === undefined) return null;
    const [position, packageId] = this.cursors.decode(cursor, cursorScope(scope));
    return { position: Number(position), packageId: String(packageId) };
  }
}

/** The partner's changes that the log records after `start`. A new price list is a change of every package. */
function* changesOf(
  catalog: PartnerCatalog,
  logged: readonly LoggedChange[],
  start: LogPlace | null,
): Generator<LoggedChange> {
  for (const change of logged) {
    if (change.packageId !== EVERY_PACKAGE) yield toVisible(catalog, change);
    else
      for (const item of packagesAfter(catalog, change, start))
        yield { ...change, packageId: item.id, changed: [...priceFieldsOf(item), ...change.changed] };
  }
}

/**
 * A cursor inside a new price list continues in the catalog's order. Later packages are included: whether they were added
 * before the list was set is not known exactly.
 */
function packagesAfter(
  { packages }: PartnerCatalog,
  { position }: LogPlace,
  start: LogPlace | null,
): readonly PackageEntity[] {
  if (start?.position !== position) return packages;
  return packages.slice(packages.findIndex(({ id }) => id === start.packageId) + 1);
}

/** Our cost is never shown. It changes the prices of partners with a margin, and no others. */
function toVisible(catalog: PartnerCatalog, change: LoggedChange): LoggedChange {
  const ofPrice = change.changed.filter((field) => field === 'price' || field === 'cost');
  if (ofPrice.length === 0) return change;
  const item = catalog.find(change.packageId);
  const isPriced = item !== undefined && ofPrice.some((field) => catalog.isPricedBy(item, field));
  const others = change.changed.filter((field) => field !== 'price' && field !== 'cost');
  return { ...change, changed: [...new Set([...others, ...(isPriced ? priceFieldsOf(item) : [])])] };
}

function priceFieldsOf({ terms }: PackageEntity): string[] {
  return terms.maxDays ? ['price', 'price_per_day'] : ['price'];
}

function firstOf<T>(items: Iterable<T>, count: number): T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length === count) break;
    first.push(item);
  }
  return first;
}

function endOf(upTo: number, start: LogPlace | null): LogPlace {
  // Another process has already shown more.
  if (start && start.position > upTo) return start;
  return { position: upTo, packageId: EVERY_PACKAGE };
}

function cursorScope({ partnerId, mode }: TenantScope): unknown {
  return ['catalog_changes', partnerId, mode];
}
