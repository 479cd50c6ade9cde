import { type ExecutionContext, Injectable } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../common/errors/index.js';

/**
 * Asserts that the edge charged this call's bucket. The charge itself is made before the body is read and also for
 * unknown paths, where no guard runs (D7, D21); `@SkipThrottle()` works as usual.
 */
@Injectable()
export class RateLimitGuard extends ThrottlerGuard {
  protected override handleRequest({ context }: { context: ExecutionContext }): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    if (request.authResult?.headers['x-ratelimit-limit'] === undefined) throw new AppError('rate_limited');
    return Promise.resolve(true);
  }
}
