import { setTimeout as delay } from 'node:timers/promises';
import { Allowances } from '../../infra/allowances.js';
import { boundedCache } from '../../infra/bounded-cache.js';

/** How long a host stays proven after each 2xx. */
const PROVEN_MS = 3_600_000;
const HOSTS_KEPT = 50_000;
/** Attempts of a partner and mode to all of its unproven hosts together. */
const UNPROVEN = { burst: 60, perSecond: 20 };
/** Interval of the shutdown check, so that shutdown does not wait for paced attempts. */
const STOP_NOTICED_MS = 100;
/**
 * Attempts per host that do not count toward `UNPROVEN`, so that a new endpoint does not wait behind one that fails.
 */
const UNPROVEN_HOST = { burst: 1, perSecond: 1 };

/**
 * Paces attempts to hosts that have not responded with 2xx. The partner may not own such a host, and must not be able
 * to attack it with a replay. A 2xx proves the host for the partner and mode of the webhook. Each process remembers
 * only its own 2xx, so after a start every host is paced until its first one.
 */
export class TargetPace {
  private readonly provenAt = boundedCache<number>(HOSTS_KEPT);
  private readonly ofOwner = new Allowances(UNPROVEN);
  private readonly ofHost = new Allowances(UNPROVEN_HOST);

  /** Resolves when an attempt may be sent: at once for a proven host, early when `isStopping` becomes true. */
  async turn(owner: string, hostname: string, isStopping: () => boolean): Promise<void> {
    const host = keyOf(owner, hostname);
    if (performance.now() - (this.provenAt.get(host) ?? -Infinity) < PROVEN_MS) return;
    if (this.ofHost.left(host) >= 1) return this.ofHost.spend(host, 1);
    const leavesAt = performance.now() + this.ofOwner.waitMs(owner, 1);
    this.ofOwner.spend(owner, 1);
    while (performance.now() < leavesAt && !isStopping())
      await delay(Math.min(leavesAt - performance.now(), STOP_NOTICED_MS));
  }

  /** Marks the host as proven by a 2xx. */
  prove(owner: string, hostname: string): void {
    this.provenAt.set(keyOf(owner, hostname), performance.now());
  }
}

function keyOf(owner: string, hostname: string): string {
  return `${owner} ${hostname}`;
}
