import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { IdempotencyKeysRepository } from '../../infra/idempotency/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { AFTER_START_MS, Sweeps } from '../../infra/sweeps.js';

const PURGE_EVERY_MS = 60_000;

/** Purges idempotency keys past their retention (D20), soon after the start and regularly after that. */
@Injectable()
export class IdempotencyPurge {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly idempotency: IdempotencyKeysRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'idempotency.purge',
      intervalMs: PURGE_EVERY_MS,
      firstAfterMs: AFTER_START_MS,
      run: (stopping) => this.purgeKeys(stopping),
    });
  }

  /** Deletes expired idempotency keys in batches and returns their number. */
  async purgeKeys(stopping?: AbortSignal): Promise<number> {
    return purgeInSteps((limit) => this.idempotency.purgeExpired(this.manager, limit), { stopping });
  }
}
