export { CatalogAdminModule } from './admin/catalog-admin.module.js';
export { CatalogApiModule } from './api/catalog-api.module.js';
export { PackageResponse, toPackageResponse } from './api/package.response.js';
export { CatalogModule } from './catalog.module.js';
export { CatalogRepository } from './catalog.repository.js';
export { CatalogService } from './catalog.service.js';
export {
  type ActivationPolicy,
  type CatalogPackage,
  NOTES_LENGTH,
  type PackageKind,
  type Region,
  SPEED_POLICY_LENGTH,
} from './package.js';
export { priceWithMargin } from './price-list.js';
export { PackageEntity } from './package.entity.js';
export { PackageSources } from './package-sources.js';
export { SandboxCatalogSeed } from './sandbox-catalog.seed.js';
export { TOPUP_FITS_FRESH_MS } from './topup-fits.js';
export { MAGIC_PACKAGES, topupPackageMatches } from './sandbox/sandbox-packages.js';
