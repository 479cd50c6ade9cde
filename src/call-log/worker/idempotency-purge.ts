import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { IdempotencyKeysRepository } from '../../infra/idempotency/index.js';
import { Sweeps } from '../../infra/sweeps.js';

const PURGE_EVERY_MS = 60_000;
const PURGE_BATCH_KEYS = 1_000;
const MAX_PURGE_BATCHES = 100;

/** Keeps the idempotency keys to their retention (D20), once at start and from then on. */
@Injectable()
export class IdempotencyPurge {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly idempotency: IdempotencyKeysRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({ name: 'idempotency.purge', intervalMs: PURGE_EVERY_MS, run: () => this.purgeKeys() });
  }

  /** Deletes expired idempotency keys, batch by batch; answers how many. */
  async purgeKeys(): Promise<number> {
    let purged = 0;
    for (let batch = 0; batch < MAX_PURGE_BATCHES; batch++) {
      const deleted = await this.idempotency.purgeExpired(this.manager, PURGE_BATCH_KEYS);
      purged += deleted;
      if (deleted < PURGE_BATCH_KEYS) break;
    }
    return purged;
  }
}
