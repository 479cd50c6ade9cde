import { type ExecutionContext, Injectable, Logger } from '@nestjs/common';
import { ThrottlerGuard, type ThrottlerRequest } from '@nestjs/throttler';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../common/errors/index.js';
import { mayBeOfOneRow } from '../infra/database/index.js';
import { GcraThrottlerStorage } from './gcra-throttler.storage.js';

/**
 * The throttler's guard with our buckets and the one error body. A route with its own `@Throttle` has a separate bucket
 * per caller; `@SkipThrottle()` works as usual.
 */
abstract class BucketGuard extends ThrottlerGuard {
  protected override async handleRequest(call: ThrottlerRequest): Promise<boolean> {
    const { context, limit, ttl, throttler } = call;
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    if (limit === throttler.limit && ttl === throttler.ttl) await this.chargePort(request, limit, ttl);
    else await this.charge(`${keyOf(request)}:${routeOf(context)}`, limit, ttl);
    return true;
  }

  /** Charges the port's own limit, which applies to every call. @throws AppError `rate_limited` */
  protected abstract chargePort(request: FastifyRequest, limit: number, ttl: number): Promise<void>;

  protected async charge(key: string, limit: number, ttl: number): Promise<void> {
    if (!(this.storageService instanceof GcraThrottlerStorage))
      throw new TypeError('the throttler has no buckets');
    const { allowed, headers } = await this.storageService.charge(key, ttl, limit);
    if (!allowed) throw new AppError('rate_limited', { headers });
  }
}

/**
 * Asserts that the partner port's edge has charged this call. The charge happens before the body is read, and also for
 * unknown paths, where no guard runs (D7, D21).
 */
@Injectable()
export class PartnerRateLimitGuard extends BucketGuard {
  protected override chargePort(request: FastifyRequest): Promise<void> {
    if (request.authResult?.headers['x-ratelimit-limit'] === undefined) throw new AppError('rate_limited');
    return Promise.resolve();
  }
}

/** Limits the admin port per token name: a runaway portal job must not starve the others. */
@Injectable()
export class AdminRateLimitGuard extends BucketGuard {
  private readonly log = new Logger(AdminRateLimitGuard.name);

  protected override async chargePort(request: FastifyRequest, limit: number, ttl: number): Promise<void> {
    try {
      await this.charge(keyOf(request), limit, ttl);
    } catch (error) {
      // A bug must not silently disable the limit.
      if (error instanceof AppError || error instanceof ReferenceError || mayBeOfOneRow(error)) throw error;
      // Only token holders reach this line. If the database is down, the call fails on its own; do not block it here.
      this.log.warn(`admin rate limit unavailable: ${(error as Error).message}`);
    }
  }
}

/** The API key, or the admin token's name. @throws AppError for a call that bypassed the edge */
function keyOf(request: FastifyRequest): string {
  const key = request.authResult?.keyId;
  if (!key) throw new AppError('unauthorized');
  return key;
}

function routeOf(context: ExecutionContext): string {
  return `${context.getClass().name}.${context.getHandler().name}`;
}
