import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import { Sweeper } from '../../infra/sweeping/index.js';
import { RunReconciliation } from './run-reconciliation.js';

/** A run that failed is tried again after this, and a new process leaves its first minutes to other work. */
const LOOK_EVERY_MS = 600_000;

/** Looks now and then whether the books are to be compared; whatever runs when the worker stops is given up. */
@Injectable()
export class ReconciliationJob implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly stopping = new AbortController();
  private readonly sweeper: Sweeper;
  private isFirstLook = true;

  constructor(
    @Inject(APP_CONFIG) { reconcileIntervalMs }: Pick<AppConfig, 'reconcileIntervalMs'>,
    @Inject(LOGGER) logger: Logger,
    private readonly reconciliation: RunReconciliation,
  ) {
    this.sweeper = new Sweeper({
      name: 'reconciliation',
      intervalMs: Math.min(reconcileIntervalMs, LOOK_EVERY_MS),
      logger,
      run: () => this.look(),
    });
  }

  onApplicationBootstrap(): void {
    this.sweeper.start();
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sweeper.stop();
  }

  private async look(): Promise<void> {
    const skips = this.isFirstLook || this.stopping.signal.aborted;
    this.isFirstLook = false;
    if (!skips) await this.reconciliation.runIfDue(this.stopping.signal);
  }
}
