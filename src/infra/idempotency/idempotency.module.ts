import { Global, Module } from '@nestjs/common';
import { IdempotencyStore } from './idempotency.store.js';
import { OnceOnly } from './once-only.js';

@Global()
@Module({ providers: [IdempotencyStore, OnceOnly], exports: [IdempotencyStore, OnceOnly] })
export class IdempotencyModule {}
