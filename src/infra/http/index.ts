/**
 * Common parts of controllers: the response envelope (D5), strict validation (D9), path ids, lists (D11), money, and
 * the boot check that every route is guarded (D7). `edge` runs before Nest, `openapi` describes the routes. Owns no
 * table.
 * Flow of a call: edge -> guards -> pipes -> idempotency -> handler -> `EnvelopeInterceptor` -> edge.
 */
export { BoundedListsInterceptor, ListSlots, ListSlotsModule } from './bounded-lists.interceptor.js';
export { CallerSlots } from './caller-slots.js';
export { isNotModified } from './envelope.interceptor.js';
export {
  EnvelopeInterceptor,
  ListResponse,
  NotModified,
  SerializedResponse,
  SerializedListResponse,
} from './envelope.interceptor.js';
export { FailureResponse, toFailureResponse } from './shared.dto.js';
export {
  compose,
  Metadata,
  METADATA_SCHEMA,
  MultiLineText,
  Optional,
  QueryInteger,
  Reference,
  Rfc3339,
  ShortText,
  SingleLineText,
} from './fields.js';
export {
  assertEveryRouteIsGuarded,
  Authenticates,
  type RouteHandler,
  routeHandlers,
} from './guarded-routes.js';
export { countCalls } from './http-metrics.js';
export { DEFAULT_LIMIT, ListQueryDto, MAX_LIMIT, startOfFeed, toListOptions } from './shared.dto.js';
export { MoneyDto } from './shared.dto.js';
export { BrandResponse, MoneyResponse, PortalMode } from './shared.dto.js';
export { PathId } from './validation.pipe.js';
export { StrictInputInterceptor } from './strict-input.interceptor.js';
export { StrictValidationPipe } from './validation.pipe.js';
