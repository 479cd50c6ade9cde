import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Sweeps } from '../../infra/sweeps.js';
import { RunReconciliation } from './run-reconciliation.js';

/** A run that failed is tried again after this, and a new process leaves its first minutes to other work. */
const LOOK_EVERY_MS = 600_000;

/** Looks now and then whether the books are to be compared; whatever runs when the worker stops is given up. */
@Injectable()
export class ReconciliationJob implements OnModuleDestroy {
  private readonly stopping = new AbortController();
  private isFirstLook = true;

  constructor(
    @Inject(APP_CONFIG) { reconcileIntervalMs }: Pick<AppConfig, 'reconcileIntervalMs'>,
    sweeps: Sweeps,
    private readonly reconciliation: RunReconciliation,
  ) {
    sweeps.register({
      name: 'reconciliation',
      intervalMs: Math.min(reconcileIntervalMs, LOOK_EVERY_MS),
      run: () => this.look(),
    });
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }

  private async look(): Promise<void> {
    const skips = this.isFirstLook || this.stopping.signal.aborted;
    this.isFirstLook = false;
    if (!skips) await this.reconciliation.runIfDue(this.stopping.signal);
  }
}
