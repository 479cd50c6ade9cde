import type { Logger } from 'pino';
import type { WorkerNotifier } from '../../infra/jobs/index.js';
import type { EndpointLeases, OwnedEndpoint } from './endpoint-leases.js';

/** An endpoint without an attempt for this long is released. */
const IDLE_MS = 30_000;
/** An endpoint that has waited this long for a slot is released, because another process may have one. */
const WAITED_LONG_MS = 1_000;
/** Time limit for the attempts of an endpoint that is being handed over; after that it stays. */
const LEAVING_MS = 2_000;
/** Minimum interval between handovers, long enough for every process to report its new load. */
const SHARED_EVERY_MS = 4_000;
/** Tolerated excess over the fair share. */
const SLACK = 0.1;

export interface EndpointSharesParts {
  readonly leases: EndpointLeases;
  readonly notifier: WorkerNotifier;
  readonly logger: Logger;
  isWaiting(endpointId: string): boolean;
}

/**
 * Releases leases of endpoints that are idle, that wait for a slot of this process, or that exceed its fair share. A
 * new process thus gets its share, and a full process delays no endpoint.
 */
export class EndpointShares {
  private sharedAtMs = -Infinity;

  constructor(private readonly parts: EndpointSharesParts) {}

  /** Call about once per second. @throws a database error; the leases then lapse */
  async balance(): Promise<void> {
    const { leases } = this.parts;
    const nowMs = performance.now();
    this.keepWhatDoesNotEnd(nowMs);
    const idle = leases.all.filter((endpoint) => this.isIdle(endpoint, nowMs));
    await leases.release(idle);
    const peers = this.parts.notifier.peers().toSorted((a, b) => a.load - b.load);
    if (peers.length === 0) return;
    for (const endpoint of leases.all.filter((each) => this.waitsLong(each, nowMs)))
      this.leave(endpoint, peers[0]!.id, nowMs);
    if (nowMs - this.sharedAtMs >= SHARED_EVERY_MS) this.shareWith(peers, nowMs);
    await this.giveUpEnded(leases.all);
  }

  /** Stops new attempts at the endpoint under this lease: one of its deliveries could not be recorded or put back. */
  abandon(endpointId: string): void {
    const endpoint = this.parts.leases.get(endpointId);
    if (endpoint) this.leave(endpoint, null, performance.now());
  }

  /**
   * Call when an attempt of the endpoint has ended; the last one releases an endpoint that is leaving. Never rejects.
   */
  async attemptEnded(endpointId: string): Promise<void> {
    const endpoint = this.parts.leases.get(endpointId);
    if (!endpoint) return;
    await this.giveUpEnded([endpoint]).catch((error: unknown) => {
      this.parts.logger.warn(
        { event: 'webhook.release_failed', endpointId, err: error },
        'its lease will lapse',
      );
    });
  }

  /** Releases all endpoints at shutdown, so that other processes acquire them at once. Never rejects. */
  async giveUpAll(): Promise<void> {
    const { leases, notifier, logger } = this.parts;
    const { all } = leases;
    try {
      await leases.release(all);
    } catch (error) {
      logger.warn({ event: 'webhook.release_failed', err: error }, 'leases will lapse');
    }
    for (const { id } of all) notifier.notify(id);
    await notifier.settle();
  }

  private isIdle(endpoint: OwnedEndpoint, nowMs: number): boolean {
    if (nowMs - endpoint.lastUsedAtMs < IDLE_MS) return false;
    return this.parts.leases.inFlightOf(endpoint.id) === 0 && !this.parts.isWaiting(endpoint.id);
  }

  private waitsLong(endpoint: OwnedEndpoint, nowMs: number): boolean {
    const waits = this.parts.leases.inFlightOf(endpoint.id) === 0 && this.parts.isWaiting(endpoint.id);
    endpoint.waitsSinceMs = waits ? (endpoint.waitsSinceMs ?? nowMs) : null;
    return endpoint.waitsSinceMs !== null && nowMs - endpoint.waitsSinceMs >= WAITED_LONG_MS;
  }

  /** Hands the excess to the peers, the least loaded one first. */
  private shareWith(peers: readonly { readonly id: string; readonly load: number }[], nowMs: number): void {
    const { leases } = this.parts;
    const own = leases.all.filter(({ leaving }) => leaving === null);
    const total = peers.reduce((sum, { load }) => sum + load, own.length);
    const fair = Math.ceil(total / (peers.length + 1));
    if (own.length <= fair + Math.max(1, fair * SLACK)) return;
    this.sharedAtMs = nowMs;
    const wanting = peers.map(({ id, load }) => ({ id, room: fair - load })).filter(({ room }) => room > 0);
    const quietFirst = own.toSorted((a, b) => leases.inFlightOf(a.id) - leases.inFlightOf(b.id));
    for (const endpoint of quietFirst.slice(0, own.length - fair)) {
      const peer = wanting.find(({ room }) => room > 0);
      if (!peer) return;
      peer.room--;
      this.leave(endpoint, peer.id, nowMs);
    }
  }

  private leave(endpoint: OwnedEndpoint, to: string | null, sinceMs: number): void {
    endpoint.leaving = { to, sinceMs };
  }

  /** Keeps an endpoint whose attempts do not end: a hanging receiver must not leave it without an owner. */
  private keepWhatDoesNotEnd(nowMs: number): void {
    for (const endpoint of this.parts.leases.all) {
      const { leaving } = endpoint;
      if (!leaving || leaving.to === null || nowMs - leaving.sinceMs < LEAVING_MS) continue;
      endpoint.leaving = null;
      this.parts.notifier.notify(endpoint.id, this.parts.leases.owner);
    }
  }

  /** Releases the given endpoints that are leaving and have nothing in flight. */
  private async giveUpEnded(endpoints: readonly OwnedEndpoint[]): Promise<void> {
    const { leases, notifier } = this.parts;
    const ended = endpoints.filter(({ id, leaving }) => leaving !== null && leases.inFlightOf(id) === 0);
    await leases.release(ended);
    for (const { id, leaving } of ended) notifier.notify(id, leaving?.to ?? undefined);
  }
}
