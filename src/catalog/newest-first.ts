import { compareText } from '../common/compare-text.js';
import type { PackageEntity } from './package.entity.js';

/** A package's position in the catalog. */
export type CatalogPlace = Pick<PackageEntity, 'createdAt' | 'id'>;

/**
 * Orders packages as the catalog lists them: newest first, and by descending id within a millisecond. A cursor stores
 * milliseconds, so the order must not use finer times.
 */
export function newestFirst(a: CatalogPlace, b: CatalogPlace): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || compareText(b.id, a.id);
}
