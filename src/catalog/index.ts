/**
 * The packages that partners can buy, and their prices (spec section 4, D24, D27). Owns the tables `packages`,
 * `catalog_changes`, `catalog_versions`, `price_lists`; reads `package_sources` and `topup_fits`, which catalog-sync writes.
 * Callers: orders and top-ups sell through `CatalogService.findSellable` and `getSellableTopup` in their transaction;
 * eSIMs list fitting top-ups; catalog-sync writes packages with `CatalogRepository.upsert`, and `migrate` those of the
 * sandbox.
 * Flow of a list: `CatalogSnapshots` (memory, by version) -> `PartnerCatalogs` (own prices) -> `CatalogList` (pages).
 * Flow of a change: `CatalogChangesRepository.record` in the transaction of the package -> `CatalogChanges` (feed).
 */
export { Days } from './api/days.dto.js';
export { EsimPackageResponse, toPackageResponse } from './api/package.response.js';
export {
  CatalogAdminModule,
  CatalogApiModule,
  CatalogModule,
  CatalogPortalModule,
} from './catalog.module.js';
export { CatalogChanges } from './catalog-changes.js';
export { CatalogChangesRepository } from './catalog-changes.repository.js';
export { CatalogRepository } from './catalog.repository.js';
export { assertSold, CatalogService, type SoldTopup } from './catalog.service.js';
export {
  type ActivationPolicy,
  type CatalogPackage,
  NAME_LENGTH,
  NOTES_LENGTH,
  type PackageKind,
  type Region,
  SALE_NOTE_LENGTH,
  SPEED_POLICY_LENGTH,
  lookOf,
  type PackageLook,
} from './package.js';
export {
  dataLabel,
  GENERATIONS,
  type Generation,
  type PackageTerms,
  UNSTATED_TERMS,
} from './package-terms.js';
export { PackageEntity } from './package.entity.js';
export { priceWithMargin } from './price-list.js';
export { MAGIC_PACKAGES, SandboxCatalogSeed } from './sandbox/sandbox-packages.js';
export { PackageSources, type SellablePackage } from './sellable-packages.js';
export { TOPUP_FITS_FRESH_MS, topupPackageMatches } from './topup-fits.js';
