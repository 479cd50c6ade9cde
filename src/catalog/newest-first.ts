import { compareText } from '../common/compare-text.js';
import type { PackageEntity } from './package.entity.js';

/** Where a package stands in the catalog. */
export type CatalogPlace = Pick<PackageEntity, 'createdAt' | 'id'>;

/**
 * Orders packages as the catalog lists them: newest first, those of one millisecond by id from the greatest. A cursor
 * holds no finer time, so the list must not go by one.
 */
export function newestFirst(a: CatalogPlace, b: CatalogPlace): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || compareText(b.id, a.id);
}
