import { infiniteQueryOptions, queryOptions, type QueryClient } from '@tanstack/react-query';
import { ApiError, get, type Query } from './client.ts';
import type {
  Delivery,
  DeliveryWithAttempts,
  Endpoint,
  Explanation,
  Mode,
  Overview,
  Package,
  Page,
  Replay,
  EndpointStats,
} from './types.ts';

/** Refresh interval of visible data, in milliseconds. */
export const LIVE_INTERVAL_MS = 2_000;

interface Asked {
  readonly state: { readonly data: unknown; readonly error: Error | null };
}

/**
 * Refetches every `intervalMs`, except after a refusal without any data: the page would switch to "loading" and back
 * each time, and lose the user's focus.
 */
export function every(intervalMs: number) {
  return ({ state: { data, error } }: Asked): number | false =>
    data === undefined && error instanceof ApiError && !error.isTransient ? false : intervalMs;
}

type One<T> = { data: T };

/**
 * Keeps the previous data until the response arrives, but only for the same list in the same mode. Rows of another mode
 * or object would appear under the wrong heading, with working buttons. The key's first two parts identify the list.
 */
function keepWithin(list: string, of: string | null) {
  return <Data>(last: Data | undefined, query: { queryKey: readonly unknown[] } | undefined) =>
    query?.queryKey[0] === list && query.queryKey[1] === of ? last : undefined;
}

/**
 * A paged list; `mode` is null if the list has only one mode. Its key begins with the path, so that a change can
 * invalidate lists by path.
 */
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

/** Refresh interval of statistics, in milliseconds: each bucket is a quarter of an hour, and the last one grows. */
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

/** Explains the state of a delivery or an endpoint. A changed `state` fetches a new explanation. */
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

/** The figures of a period and of the one before, and the things that need attention. */
export const overviewQuery = (mode: Mode, window: Overview['window']) =>
  queryOptions({
    queryKey: ['overview', mode, window],
    queryFn: async ({ signal }) => (await get<One<Overview>>('overview', { mode, window }, signal)).data,
    refetchInterval: every(OVERVIEW_INTERVAL_MS),
    placeholderData: keepWithin('overview', mode),
  });

/** Refresh interval of Home, in milliseconds: its steps are hours and days. */
export const OVERVIEW_INTERVAL_MS = 30_000;

/** Path of an endpoint's delivery log; the keys of its queries begin with it. */
export const deliveriesOf = (endpointId: string) => `webhook-endpoints/${endpointId}/deliveries`;

/** Refetches the newest page of an endpoint's log at once, but not the older pages. */
export function refreshDeliveryLog(queries: QueryClient, endpointId: string): void {
  const path = deliveriesOf(endpointId);
  void queries.invalidateQueries({
    predicate: ({ queryKey }) => queryKey[0] === path && queryKey.at(-1) === 'newest',
  });
}

/**
 * The endpoint's most recently failed delivery, if any.
 * @param changedAt time of the endpoint's last change; the result is cached until the next one
 */
export const lastFailedQuery = (endpointId: string, changedAt: string) =>
  queryOptions({
    queryKey: [deliveriesOf(endpointId), 'last-failed', changedAt],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const query = { status: 'failed', limit: 1 };
      return (await get<Page<Delivery>>(deliveriesOf(endpointId), query, signal)).data[0] ?? null;
    },
  });

/** The successful delivery of a failed delivery's event to the same endpoint, if any. */
export const deliveredLaterQuery = ({ id, endpoint_id: endpoint, event_id: event }: Delivery) =>
  queryOptions({
    queryKey: [deliveriesOf(endpoint), 'delivered-later', id],
    queryFn: async ({ signal }) => {
      const query = { event_id: event, status: 'delivered', limit: 1 };
      return (await get<Page<Delivery>>(deliveriesOf(endpoint), query, signal)).data[0] ?? null;
    },
    refetchInterval: ({ state }) => (state.data ? false : every(LIVE_INTERVAL_MS)({ state })),
  });

/** A package of a mode's catalog. Its name never changes while the portal is open. */
export const packageQuery = (id: string, mode: Mode) =>
  queryOptions({
    queryKey: ['catalog', mode, 'one', id],
    queryFn: async ({ signal }) =>
      (await get<One<Package>>(`catalog/${encodeURIComponent(id)}`, { mode }, signal)).data,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

/** One object by its id. */
export const oneQuery = <T>(path: string, id: string) =>
  queryOptions({
    queryKey: [path, 'one', id],
    queryFn: async ({ signal }) => (await get<One<T>>(`${path}/${encodeURIComponent(id)}`, {}, signal)).data,
  });
