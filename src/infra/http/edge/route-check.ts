import type { FastifyRequest } from 'fastify';
import { AppError } from '../../../common/errors/index.js';

/** 404 for a path that does not exist, 405 with `Allow` for one that exists for other methods. */
export function checkRoute(request: FastifyRequest): AppError | null {
  if (!request.is404) return null;
  const allowed = allowedMethods(request);
  if (allowed.length === 0) return new AppError('not_found');
  return new AppError('method_not_allowed', { headers: { allow: allowed.join(', ') } });
}

function allowedMethods({ server, raw }: FastifyRequest): string[] {
  const url = raw.url ?? '';
  return server.supportedMethods.filter((method) => {
    const route = server.findRoute({ method, url });
    return route !== null && !hasEmptyParam(route.params);
  });
}

/** The router lets `/v1/orders//cancel` match `/v1/orders/:id/cancel`; Nest would notice after the body. */
export function hasEmptyParam(params: unknown): boolean {
  const values = params as Readonly<Record<string, string | undefined>>;
  for (const name in values) {
    if (values[name] === '' && name !== '*') return true;
  }
  return false;
}
