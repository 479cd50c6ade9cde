import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TenantScope } from '../../common/tenant-scope.js';
import { isNotModified, NotModified, SerializedListResponse, toListOptions } from '../../infra/http/index.js';
import type { CatalogList } from '../catalog-list.js';
import type { CatalogService } from '../catalog.service.js';
import {
  type CatalogQueryDto,
  type PackageQueryDto,
  toCatalogFilters,
  wantsShelf,
} from './catalog-query.dto.js';
import { type EsimPackageResponse, toPackageOfDays, toPackageResponse } from './package.response.js';

/** The call whose `If-None-Match` is compared, and its reply, which gets the `ETag`. */
export interface CachedCall {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * The catalog's page or shelf for a query, for the partner API and the portal.
 * @throws ValidationFailed, AppError `invalid_cursor`
 */
export async function respondWithPackages(
  list: CatalogList,
  scope: TenantScope,
  query: CatalogQueryDto,
  { request, reply }: CachedCall,
): Promise<SerializedListResponse | NotModified> {
  const filters = toCatalogFilters(query);
  const page = wantsShelf(query)
    ? { nextCursor: null, ...(await list.shelf(scope, filters, toPackageResponse)) }
    : await list.list(scope, filters, toListOptions(query), toPackageResponse);
  if (isNotModified(request, reply, page.etag)) return new NotModified();
  return new SerializedListResponse(page.itemsJson, page.nextCursor);
}

/** One package, for the partner API and the portal. @throws NotFound, ValidationFailed */
export async function respondWithPackage(
  catalog: CatalogService,
  scope: TenantScope,
  id: string,
  query: PackageQueryDto,
  { request, reply }: CachedCall,
): Promise<EsimPackageResponse | NotModified> {
  const { item, days, version } = await catalog.getPackage(scope, id, query.days ?? null);
  const forDays = days === null ? '' : `-${days}`;
  return isNotModified(request, reply, `W/"${scope.mode}-${version}-${item.id}${forDays}"`)
    ? new NotModified()
    : toPackageOfDays(item, days);
}
