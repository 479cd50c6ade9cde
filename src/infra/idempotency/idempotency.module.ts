import { Global, Module } from '@nestjs/common';
import { IdempotencyStore } from './idempotency.store.js';
import { IdempotentExecutor } from './idempotent-executor.js';

@Global()
@Module({
  providers: [IdempotencyStore, IdempotentExecutor],
  exports: [IdempotencyStore, IdempotentExecutor],
})
export class IdempotencyModule {}
