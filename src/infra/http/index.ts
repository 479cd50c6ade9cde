export { isNotModified } from './entity-tag.js';
export {
  EnvelopeInterceptor,
  ListResponse,
  NotModified,
  SerializedResponse,
  SerializedListResponse,
} from './envelope.interceptor.js';
export { FailureResponse, toFailureResponse } from './failure.response.js';
export { compose, Metadata, Optional, QueryInteger, Reference, Rfc3339, ShortText } from './fields.js';
export {
  assertEveryRouteIsGuarded,
  Authenticates,
  type RouteHandler,
  routeHandlers,
} from './guarded-routes.js';
export { DEFAULT_LIMIT, ListQueryDto, MAX_LIMIT, toListOptions } from './list-query.dto.js';
export { MoneyDto } from './money.dto.js';
export { MoneyResponse } from './money.response.js';
export { PathId } from './path-id.pipe.js';
export { StrictInputInterceptor } from './strict-input.interceptor.js';
export { StrictValidationPipe } from './validation.pipe.js';
