import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { MeController } from './api/me.controller.js';
import { ApiKeyAuthRepository } from './api-key-auth.repository.js';
import { ApiKeyAuthenticator } from './api-key-authenticator.js';
import { AdminAuthenticator, PartnerAuthenticator } from './authenticators.js';
import { GcraThrottlerStorage } from './gcra-throttler.storage.js';
import { RateLimitGuard } from './guards.js';
import { RedisBuckets } from './redis-buckets.js';

@Module({
  providers: [ApiKeyAuthRepository, GcraThrottlerStorage],
  exports: [ApiKeyAuthRepository, GcraThrottlerStorage],
})
export class RateLimitStorageModule {}

/** Key check and rate limit of the partner port. */
@Module({
  imports: [
    RateLimitStorageModule,
    ThrottlerModule.forRootAsync({
      imports: [RateLimitStorageModule],
      inject: [APP_CONFIG, GcraThrottlerStorage],
      useFactory: (config: AppConfig, storage: GcraThrottlerStorage) => ({
        throttlers: [{ name: 'default', limit: config.rateLimit.burst, ttl: 60_000 }],
        storage,
      }),
    }),
  ],
  controllers: [MeController],
  providers: [
    ApiKeyAuthenticator,
    RedisBuckets,
    PartnerAuthenticator,
    { provide: APP_GUARD, useClass: RateLimitGuard },
  ],
  exports: [PartnerAuthenticator],
})
export class PartnerAuthModule {}

/** Token check of the admin port. */
@Module({ providers: [AdminAuthenticator], exports: [AdminAuthenticator] })
export class AdminAuthModule {}
