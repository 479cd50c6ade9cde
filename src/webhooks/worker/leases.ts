import type { Logger } from 'pino';
import { Sweeper } from '../../infra/sweeping/index.js';
import type { ClaimsRepository, LeaseKey, LeaseTerms } from './claims.repository.js';

/** The reason with which a stop aborts attempts (D30: they are logged `interrupted`). */
export class AttemptInterrupted extends Error {
  override readonly name = 'AttemptInterrupted';
}

export interface LeasesOptions {
  readonly terms: LeaseTerms;
  readonly claims: Pick<ClaimsRepository, 'renew'>;
  readonly logger: Logger;
}

/** The leases of everything in flight in this process, kept alive by a heartbeat of one statement. */
export class Leases {
  private readonly held = new Map<string, { readonly lease: LeaseKey; readonly control: AbortController }>();
  private readonly heartbeat: Sweeper;

  constructor(private readonly options: LeasesOptions) {
    const { terms, logger } = options;
    // Every third of the lease, so that two beats may be lost.
    const intervalMs = terms.leaseMs / 3;
    this.heartbeat = new Sweeper({ name: 'webhooks.leases', intervalMs, logger, run: () => this.beat() });
  }

  start(): void {
    this.heartbeat.start();
  }

  async stop(): Promise<void> {
    await this.heartbeat.stop();
  }

  /** Keeps the lease until `drop`; the control cuts the attempt. */
  hold(lease: LeaseKey): AbortController {
    const control = new AbortController();
    this.held.set(lease.id, { lease, control });
    return control;
  }

  drop(lease: LeaseKey): void {
    // Another claim of the same delivery may hold it by now.
    if (this.held.get(lease.id)?.lease.fence === lease.fence) this.held.delete(lease.id);
  }

  /** Cuts every attempt in flight; answers how many. */
  interruptAll(): number {
    for (const { control } of this.held.values()) control.abort(new AttemptInterrupted());
    return this.held.size;
  }

  private async beat(): Promise<void> {
    if (this.held.size === 0) return;
    await this.options.claims.renew(
      this.options.terms,
      [...this.held.values()].map(({ lease }) => lease),
    );
  }
}
