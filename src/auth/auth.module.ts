import { type DynamicModule, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { APP_CONFIG, type AppConfig, type RateLimitConfig } from '../config/index.js';
import { MeController } from './api/me.controller.js';
import { ApiKeyAuthRepository } from './api-key-auth.repository.js';
import { ApiKeyAuthenticator } from './api-key-authenticator.js';
import { AdminAuthenticator, PartnerAuthenticator } from './authenticators.js';
import { GcraThrottlerStorage, toThrottlerLimit } from './gcra-throttler.storage.js';
import { AdminRateLimitGuard, PartnerRateLimitGuard } from './rate-limit.guard.js';
import { KeySpending } from './key-spending.js';
import { PortalAuthenticator } from './portal-authenticator.js';
import { PortalSessionAuthRepository } from './portal-session-auth.repository.js';
import { PurgeRateBuckets } from './purge-rate-buckets.js';
import { RateBucketsRepository } from './rate-buckets.repository.js';
import { RedisBuckets } from './redis-buckets.js';

@Module({
  providers: [ApiKeyAuthRepository, GcraThrottlerStorage],
  exports: [ApiKeyAuthRepository, GcraThrottlerStorage],
})
export class RateLimitStorageModule {}

function throttlerFor(rateOf: (config: AppConfig) => RateLimitConfig): DynamicModule {
  return ThrottlerModule.forRootAsync({
    imports: [RateLimitStorageModule],
    inject: [APP_CONFIG, GcraThrottlerStorage],
    useFactory: (config: AppConfig, storage: GcraThrottlerStorage) => ({
      throttlers: [{ name: 'default', ...toThrottlerLimit(rateOf(config)) }],
      storage,
    }),
  });
}

/** Purges buckets in the worker; otherwise their number would only grow. */
@Module({ providers: [RateBucketsRepository, PurgeRateBuckets], exports: [PurgeRateBuckets] })
export class RateBucketPurgeModule {}

/** Counts the purchases of keys with a spend limit, for the wallet and the purge. */
@Module({ providers: [KeySpending], exports: [KeySpending] })
export class KeySpendingModule {}

/** Key check and rate limit for the partner port. */
@Module({
  imports: [KeySpendingModule, RateLimitStorageModule, throttlerFor((config) => config.rateLimit)],
  controllers: [MeController],
  providers: [
    ApiKeyAuthenticator,
    RedisBuckets,
    PartnerAuthenticator,
    { provide: APP_GUARD, useClass: PartnerRateLimitGuard },
  ],
  exports: [PartnerAuthenticator],
})
export class PartnerAuthModule {}

/** Token check and rate limit for the admin port. */
@Module({
  imports: [RateLimitStorageModule, throttlerFor((config) => config.adminRateLimit)],
  providers: [AdminAuthenticator, { provide: APP_GUARD, useClass: AdminRateLimitGuard }],
  exports: [AdminAuthenticator],
})
export class AdminAuthModule {}

/** Session check and rate limit for the portal. */
@Module({
  imports: [RateLimitStorageModule],
  providers: [PortalSessionAuthRepository, PortalAuthenticator],
  exports: [PortalAuthenticator],
})
export class PortalAuthModule {}
