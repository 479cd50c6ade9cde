import { Inject, Injectable } from '@nestjs/common';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { boundedCache } from '../../infra/bounded-cache.js';
import {
  type Claim,
  type ClaimRequest,
  type GroupOwner,
  InjectNotifier,
  type JobSource,
  WorkerNotifier,
} from '../../infra/jobs/index.js';
import { DELIVERY_JOBS } from '../delivery-fan-out.js';
import { type DeliveryRules, freeSlots, SLOW_START } from '../delivery-rules.js';
import { type ClaimedEndpoint, DeliveriesRepository, type StartedDelivery } from './deliveries.repository.js';
import { EndpointLeases, type OwnedEndpoint } from './endpoint-leases.js';

const ENDPOINTS_KEPT = 50_000;
const NOTHING: Claim<StartedDelivery> = { items: [], nextDueInMs: null, more: false };
const AGAIN: Claim<StartedDelivery> = { ...NOTHING, nextDueInMs: 0 };
const NO_ROOM: Claim<StartedDelivery> = { ...NOTHING, more: true };

interface EndpointRequest {
  readonly endpoint: OwnedEndpoint;
  /** Attempts that may begin. */
  readonly free: number;
}

/**
 * The due deliveries of the endpoints that this process owns. It acquires an endpoint's lease before sending to it, and
 * notifies the owner when another process holds the lease.
 */
@Injectable()
export class OwnedDeliveries implements JobSource<StartedDelivery> {
  private readonly rules: DeliveryRules;
  /** An endpoint's partner never changes. */
  private readonly owners = boundedCache<GroupOwner>(ENDPOINTS_KEPT);

  constructor(
    private readonly leases: EndpointLeases,
    private readonly deliveries: DeliveriesRepository,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'webhooks'>,
  ) {
    this.rules = config.webhooks;
  }

  async claim(endpointId: string, limit: number): Promise<Claim<StartedDelivery>> {
    const [claim] = await this.claimMany([{ group: endpointId, limit }]);
    return claim!;
  }

  /**
   * Starts due deliveries, oldest first, within the endpoint's window (D34). Deliveries of a disabled, blocked or
   * deleted endpoint stay where they are (D31, D32).
   */
  async claimMany(requests: readonly ClaimRequest[]): Promise<readonly Claim<StartedDelivery>[]> {
    await this.acquire(requests.map(({ group }) => group).filter((id) => !this.leases.get(id)));
    const asked = new Map<string, EndpointRequest>();
    for (const { group, limit } of requests) {
      const endpoint = this.leases.get(group);
      if (!endpoint || endpoint.leaving) continue;
      asked.set(group, { endpoint, free: Math.min(limit, this.freeSlotsOf(endpoint)) });
    }
    const claimed = await this.claimReserved([...asked.values()].filter(({ free }) => free > 0));
    return requests.map(({ group }) => {
      const request = asked.get(group);
      if (!request) return NOTHING;
      if (request.free === 0) return NO_ROOM;
      return this.toClaim(request, claimed.get(group));
    });
  }

  /** Free attempts in the endpoint's window (D34). */
  freeSlotsOf({ id, window }: OwnedEndpoint): number {
    return freeSlots(this.rules, window, this.leases.inFlightOf(id));
  }

  /** Counts the claim's possible attempts as in flight, so that the lease is not released in the meantime. */
  private async claimReserved(
    requests: readonly EndpointRequest[],
  ): Promise<ReadonlyMap<string, ClaimedEndpoint>> {
    for (const { endpoint, free } of requests) this.leases.count(endpoint.id, free);
    let claimed: ReadonlyMap<string, ClaimedEndpoint> = new Map();
    try {
      claimed = await this.deliveries.claim(
        this.leases.owner,
        requests.map(({ endpoint, free }) => ({ endpointId: endpoint.id, fence: endpoint.fence, free })),
      );
      return claimed;
    } finally {
      for (const { endpoint, free } of requests)
        this.leases.count(endpoint.id, (claimed.get(endpoint.id)?.deliveries.length ?? 0) - free);
    }
  }

  private toClaim(
    { endpoint, free }: EndpointRequest,
    claimed: ClaimedEndpoint | undefined,
  ): Claim<StartedDelivery> {
    if (!claimed) {
      this.leases.forget(endpoint);
      return AGAIN;
    }
    const { deliveries, consecutiveBlocks, slowStartSince, nextDueInMs } = claimed;
    endpoint.consecutiveBlocks = consecutiveBlocks;
    // The row may briefly still show a slow start that has just ended here.
    if (slowStartSince !== null && slowStartSince !== endpoint.slowStart?.since) {
      endpoint.window = SLOW_START;
      endpoint.slowStart = { since: slowStartSince, isOver: false };
    }
    if (deliveries.length > 0) endpoint.lastUsedAtMs = performance.now();
    return { items: deliveries, nextDueInMs, more: deliveries.length === free };
  }

  private async acquire(endpointIds: readonly string[]): Promise<void> {
    if (endpointIds.length === 0) return;
    const { owners, taken } = await this.leases.acquire(endpointIds);
    for (const { id, partnerId, mode } of taken) this.owners.set(id, toGroupOwner(partnerId, mode));
    for (const [id, owner] of owners) this.notifier.notify(id, owner);
  }

  ownerOf(endpointId: string): GroupOwner | null {
    return this.owners.get(endpointId) ?? null;
  }

  async learnOwners(endpointIds: readonly string[]): Promise<void> {
    const unknown = endpointIds.filter((id) => !this.owners.has(id));
    if (unknown.length === 0) return;
    for (const { id, partnerId, mode } of await this.deliveries.listPartners(unknown))
      this.owners.set(id, toGroupOwner(partnerId, mode));
  }

  async renew(): Promise<void> {
    await this.leases.renew();
  }

  async listGroupsDue(after: string, limit: number): Promise<readonly string[]> {
    return this.deliveries.listEndpointsDue(this.leases.owner, after, limit);
  }
}

function toGroupOwner(partnerId: string, mode: Mode): GroupOwner {
  return { id: `${partnerId}:${mode}`, mode };
}
