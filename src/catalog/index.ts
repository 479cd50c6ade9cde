export { CatalogApiModule } from './api/catalog-api.module.js';
export { PackageResponse, toPackageResponse } from './api/package.response.js';
export { CatalogModule } from './catalog.module.js';
export { CatalogRepository } from './catalog.repository.js';
export { CatalogService } from './catalog.service.js';
export type { ActivationPolicy, CatalogPackage } from './package.js';
export { PackageEntity } from './package.entity.js';
export { SandboxCatalogSeed } from './sandbox-catalog.seed.js';
export { MAGIC_PACKAGES, topupPackageMatches } from './sandbox/sandbox-packages.js';
