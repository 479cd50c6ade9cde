import { infiniteQueryOptions, queryOptions, type QueryClient } from '@tanstack/react-query';
import { ApiError, get, type Query } from './client.ts';
import type {
  Delivery,
  DeliveryWithAttempts,
  Endpoint,
  Explanation,
  Mode,
  Page,
  Replay,
  EndpointStats,
} from './types.ts';

/** How often what is open on the screen is asked for again, in milliseconds. */
export const LIVE_INTERVAL_MS = 2_000;

interface Asked {
  readonly state: { readonly data: unknown; readonly error: Error | null };
}

/**
 * Asks again every `intervalMs`, but not for what was refused before there was anything to show: the page would change to
 * "loading" and back each time, and lose the focus of who is in it.
 */
export function every(intervalMs: number) {
  return ({ state: { data, error } }: Asked): number | false =>
    data === undefined && error instanceof ApiError && !error.isTransient ? false : intervalMs;
}

type One<T> = { data: T };

/**
 * What was shown before stays until the answer is there, but only while it is of the same list in the same mode: rows of
 * another mode or object under this one's heading would be a lie, with buttons that work. They are the key's first two parts.
 */
function keepWithin(list: string, of: string | null) {
  return <Data>(last: Data | undefined, query: { queryKey: readonly unknown[] } | undefined) =>
    query?.queryKey[0] === list && query.queryKey[1] === of ? last : undefined;
}

/** A list by pages; `mode` is null where the list is of one mode anyway. Its key begins with the path, so that a change names what it makes stale. */
export function pages<T>(path: string, mode: Mode | null, filters: Query = {}) {
  return infiniteQueryOptions({
    queryKey: [path, mode, filters],
    queryFn: ({ pageParam, signal }) =>
      get<Page<T>>(
        path,
        { ...(mode ? { mode } : {}), ...filters, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepWithin(path, mode),
  });
}

export const endpointQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhook-endpoints', 'one', id],
    queryFn: async ({ signal }) => (await get<One<Endpoint>>(`webhook-endpoints/${id}`, {}, signal)).data,
    refetchInterval: every(LIVE_INTERVAL_MS),
  });

/** How often figures are asked for again, in milliseconds: each bucket is a quarter of an hour, the last one grows. */
const STATS_INTERVAL_MS = 15_000;

export const statsQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhook-endpoints', 'stats', id],
    queryFn: async ({ signal }) =>
      (await get<One<EndpointStats>>(`webhook-endpoints/${id}/stats`, { window: '24h' }, signal)).data
        .buckets,
    refetchInterval: every(STATS_INTERVAL_MS),
    staleTime: STATS_INTERVAL_MS,
  });

export const deliveryQuery = (id: string) =>
  queryOptions({
    queryKey: ['deliveries', id],
    queryFn: async ({ signal }) =>
      (await get<One<DeliveryWithAttempts>>(`deliveries/${id}`, {}, signal)).data,
    refetchInterval: every(LIVE_INTERVAL_MS),
  });

/** Why a delivery or an endpoint is how it is: another answer when `state` is another. */
export const explanationQuery = (of: 'deliveries' | 'webhook-endpoints', id: string, state: string) =>
  queryOptions({
    queryKey: [of, id, 'explanation', state],
    queryFn: async ({ signal }) => (await get<One<Explanation>>(`${of}/${id}/explanation`, {}, signal)).data,
    placeholderData: keepWithin(of, id),
  });

export const replayQuery = (id: string) =>
  queryOptions({
    queryKey: ['replays', id],
    queryFn: async ({ signal }) => (await get<One<Replay>>(`replays/${id}`, {}, signal)).data,
    refetchInterval: ({ state }) =>
      state.data && state.data.status !== 'running' && state.data.pending === 0
        ? false
        : every(1_000)({ state }),
  });

/** The path of an endpoint's Delivery log, with which the keys of its queries begin. */
export const deliveriesOf = (endpointId: string) => `webhook-endpoints/${endpointId}/deliveries`;

/** Asks for the newest page of an endpoint's log at once. Pages that were scrolled to are not read again. */
export function refreshDeliveryLog(queries: QueryClient, endpointId: string): void {
  const path = deliveriesOf(endpointId);
  void queries.invalidateQueries({
    predicate: ({ queryKey }) => queryKey[0] === path && queryKey.at(-1) === 'newest',
  });
}

/** The delivery of an endpoint that failed last, if any. @param changedAt when the endpoint changed last: until it does, there is no other */
export const lastFailedQuery = (endpointId: string, changedAt: string) =>
  queryOptions({
    queryKey: [deliveriesOf(endpointId), 'last-failed', changedAt],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const query = { status: 'failed', limit: 1 };
      return (await get<Page<Delivery>>(deliveriesOf(endpointId), query, signal)).data[0] ?? null;
    },
  });

/** One object by its id. */
export const oneQuery = <T>(path: string, id: string) =>
  queryOptions({
    queryKey: [path, 'one', id],
    queryFn: async ({ signal }) => (await get<One<T>>(`${path}/${encodeURIComponent(id)}`, {}, signal)).data,
  });
