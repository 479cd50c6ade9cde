import { randomBytes } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { Transactions } from '../../src/infra/database/index.js';
import {
  callProvider,
  type Placement,
  PlacementGuard,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type ProviderTopupRequest,
  type ProviderTopupState,
  ProviderUnavailable,
  type ProviderCost,
  type LiveProvider,
} from '../../src/providers/index.js';
import type { ProviderRateLimiter } from '../../src/providers/http/provider-rate-limiter.js';
import { eventually } from '../harness/index.js';

/** The faults and books of any provider's simulator. Counts apply to the next calls only. */
export interface ProviderSim {
  /** eSIMs bought under the reference, including canceled ones: three for an order of three. */
  purchasesOf(reference: string): Promise<number>;
  /** Canceled eSIMs of the reference. */
  canceledOf(reference: string): Promise<number>;
  /** How often the top-up of the reference was applied. */
  topupsOf(reference: string): Promise<number>;
  /** The next `n` orders or top-ups take effect, but their responses are lost. */
  dropAnswersAfterCommit(n: number): Promise<void>;
  /** The next `n` orders or top-ups are lost in transit. */
  dropAnswersBeforeCommit(n: number): Promise<void>;
  /** The next `n` calls of any kind are refused as busy. */
  refuseAsBusy(n: number): Promise<void>;
  /** The next `n` calls of any kind have no effect and get an unusable response. */
  answerGarbage(n: number): Promise<void>;
  outOfStock(on: boolean): Promise<void>;
}

export interface ProviderWorld {
  readonly provider: LiveProvider;
  /** The adapter of a fresh process, without knowledge of earlier calls. */
  anotherProvider(): LiveProvider;
  readonly sim: ProviderSim;
  readonly basePackage: { readonly upstreamPackageId: string; readonly unitCost: ProviderCost };
  /** Fits eSIMs of `basePackage`. */
  readonly topupPackage: { readonly upstreamPackageId: string; readonly unitCost: ProviderCost };
  close(): Promise<void>;
}

/** No call waits for a slot or misses one on a busy machine. For tests that do not cover the rate limit. */
export const UNPACED = {
  inSlot: <T>(_call: unknown, send: (closesAt: number) => Promise<T>) => send(Infinity),
  slowDown: () => undefined,
} as unknown as ProviderRateLimiter;

/** The guard of a worker, which alerts support about repetitions. */
export function newPlacementGuard(dataSource: DataSource): PlacementGuard {
  const guard = new PlacementGuard(new Transactions(dataSource), dataSource.manager);
  for (const operation of ['order', 'topup', 'cancel'] as const)
    guard.onRepeat(operation, () => Promise.resolve());
  return guard;
}

export function newOrder(world: ProviderWorld, quantity = 1): ProviderOrderRequest {
  return {
    reference: `prv_${randomBytes(10).toString('hex')}`,
    packageId: 'pkg_of_the_test',
    quantity,
    days: null,
    acceptedAt: new Date(),
    ...world.basePackage,
  };
}

export function newTopup(world: ProviderWorld, esim: ProviderTopupRequest['esim']): ProviderTopupRequest {
  return {
    reference: `prv_${randomBytes(10).toString('hex')}`,
    esim,
    days: null,
    packageId: 'pkg_of_the_test',
    acceptedAt: new Date(),
    otherPurchases: () =>
      Promise.resolve({
        orderReference: 'of_an_order_with_another_name',
        basePackageId: world.basePackage.upstreamPackageId,
        baseBytes: null,
        topups: [],
        doubtful: 0,
      }),
    ...world.topupPackage,
  };
}

export function place(
  provider: LiveProvider,
  order: ProviderOrderRequest,
  placement: Placement = 'first',
): Promise<ProviderOrderState> {
  return callProvider(provider, (signal) => provider.placeOrder(order, placement, signal));
}

export function find(
  provider: LiveProvider,
  order: ProviderOrderRequest,
): Promise<ProviderOrderState | null> {
  return callProvider(provider, (signal) => provider.findOrder(order, signal));
}

export function placeTopup(
  provider: LiveProvider,
  topup: ProviderTopupRequest,
  placement: Placement = 'first',
): Promise<ProviderTopupState> {
  return callProvider(provider, (signal) => provider.placeTopup(topup, placement, signal));
}

export function findTopup(
  provider: LiveProvider,
  topup: ProviderTopupRequest,
): Promise<ProviderTopupState | null> {
  return callProvider(provider, (signal) => provider.findTopup(topup, signal));
}

/** Places an order and follows it, like the worker without faults. */
export async function provision(
  provider: LiveProvider,
  order: ProviderOrderRequest,
): Promise<Extract<ProviderOrderState, { state: 'provisioned' }>> {
  const state = await orderSettled(provider, order, await place(provider, order));
  if (state.state !== 'provisioned') throw new Error(`the order is ${state.state}: ${JSON.stringify(state)}`);
  return state;
}

/** Follows an order until it is no longer in progress. */
export async function orderSettled(
  provider: LiveProvider,
  order: ProviderOrderRequest,
  first: ProviderOrderState,
): Promise<ProviderOrderState> {
  if (first.state !== 'in_progress') return first;
  return eventually('the order is settled', async () => {
    const state = await unlessAway(() => find(provider, order));
    return state && state.state !== 'in_progress' ? state : null;
  });
}

export async function topupSettled(
  provider: LiveProvider,
  topup: ProviderTopupRequest,
  first: ProviderTopupState,
): Promise<ProviderTopupState> {
  if (first.state !== 'in_progress') return first;
  return eventually('the top-up is settled', async () => {
    const state = await unlessAway(() => findTopup(provider, topup));
    return state && state.state !== 'in_progress' ? state : null;
  });
}

/**
 * Recovers like the worker after a crash or a lost response: looks the order up, and places it again only if unknown.
 */
export function recoverOrder(
  provider: LiveProvider,
  order: ProviderOrderRequest,
): Promise<ProviderOrderState> {
  return eventually('the order is recovered', async () => {
    const state = await unlessAway(
      async () => (await find(provider, order)) ?? (await place(provider, order, 'again')),
    );
    return state && state.state !== 'in_progress' ? state : null;
  });
}

export function recoverTopup(
  provider: LiveProvider,
  topup: ProviderTopupRequest,
): Promise<ProviderTopupState> {
  return eventually('the top-up is recovered', async () => {
    const state = await unlessAway(
      async () => (await findTopup(provider, topup)) ?? (await placeTopup(provider, topup, 'again')),
    );
    return state && state.state !== 'in_progress' ? state : null;
  });
}

/** Null while the provider is unavailable or does not respond. Other errors are thrown. */
async function unlessAway<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ProviderUnavailable || error instanceof ProviderOutcomeUnknown) return null;
    throw error;
  }
}
