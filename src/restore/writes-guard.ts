import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { FastifyRequest } from 'fastify';
import type { EntityManager } from 'typeorm';
import { AppError } from '../common/errors/index.js';
import { sql } from '../infra/database/index.js';

/** How long a process caches the state. Every process refuses writes within twice this time after a repair starts. */
export const WRITES_KEPT_MS = 1_000;
const RETRY_AFTER_SECONDS = 30;
const ONLY_READS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Refuses writes of partners and the portal while a restored database is being repaired, because a new purchase or
 * change might repeat one that the database has lost (D54). Reads continue, and so does the admin port, because keys
 * have to be revoked again. At most one statement per second, and none without writes.
 */
@Injectable()
export class WritesGuard implements CanActivate {
  private areRefused = false;
  private readAtMs = -Infinity;
  private reading: Promise<void> | null = null;

  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { method } = context.switchToHttp().getRequest<FastifyRequest>();
    if (ONLY_READS.includes(method)) return true;
    if (performance.now() - this.readAtMs < WRITES_KEPT_MS) return this.decide();
    this.reading ??= this.read().finally(() => (this.reading = null));
    return this.reading.then(() => this.decide());
  }

  /** @throws AppError `service_unavailable` */
  private decide(): true {
    if (!this.areRefused) return true;
    throw new AppError('service_unavailable', {
      detail: 'Writes are blocked while the service is being restored. Retry with the same Idempotency-Key.',
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }

  private async read(): Promise<void> {
    const startedAtMs = performance.now();
    const { rows } = await sql(this.manager, 'SELECT FROM restore_epochs WHERE completed_at IS NULL LIMIT 1');
    this.areRefused = rows.length > 0;
    this.readAtMs = startedAtMs;
  }
}
