import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef } from 'react';
import { get, type Query } from '../../api/client.ts';
import { deliveriesOf, LIVE_INTERVAL_MS } from '../../api/queries.ts';
import type { Delivery, Endpoint, Page } from '../../api/types.ts';

const PAGE = 50;
/** Number of pages that are refetched while they contain open deliveries. */
const PAGES_KEPT_FRESH = 4;

/**
 * Whether a delivery will change by itself. A held one waits until the endpoint is enabled, and is then released
 * gradually.
 */
function isOpen(delivery: Delivery, endpoint: Endpoint): boolean {
  return delivery.status === 'pending' || (delivery.status === 'held' && endpoint.status !== 'disabled');
}

/**
 * The deliveries of an endpoint, newest first. The newest page is refetched every two seconds; older ones only when the
 * user scrolls to them, so that a long log neither moves under the reader nor costs more. While a response for other
 * filters is pending, `isOutdated` is true and the deliveries are the previous ones.
 */
export function useDeliveryLog(endpoint: Endpoint, filters: Query) {
  const queries = useQueryClient();
  const path = deliveriesOf(endpoint.id);
  const key = useMemo(() => [path, filters], [path, filters]);
  const read = useCallback(
    (cursor: string, signal: AbortSignal) =>
      get<Page<Delivery>>(path, { ...filters, limit: PAGE, ...(cursor === '' ? {} : { cursor }) }, signal),
    [path, filters],
  );
  const keep = <Data>(last: Data | undefined, query: { queryKey: readonly unknown[] } | undefined) =>
    query?.queryKey[0] === path ? last : undefined;
  const log = useInfiniteQuery({
    queryKey: [...key, 'log'],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keep,
    refetchInterval: ({ state }) => {
      const read = state.data?.pages ?? [];
      const open = read.some((page) => page.data.some((delivery) => isOpen(delivery, endpoint)));
      return open && read.length <= PAGES_KEPT_FRESH ? LIVE_INTERVAL_MS : false;
    },
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  const isOutdated = log.isPlaceholderData;
  const newest = useQuery({
    queryKey: [...key, 'newest'],
    queryFn: ({ signal }) => read('', signal),
    enabled: log.isSuccess && !isOutdated,
    placeholderData: keep,
    refetchInterval: LIVE_INTERVAL_MS,
  });
  useReadAnew(path, endpoint.status);

  const older = useMemo(() => log.data?.pages.flatMap((page) => page.data) ?? [], [log.data]);
  // Ignore the newest page while its filters differ from those of the older pages.
  const head = newest.isPlaceholderData === isOutdated ? newest.data : undefined;
  // More deliveries arrived at once than a page holds: start over to read the gap.
  const gap =
    !isOutdated &&
    head !== undefined &&
    head.has_more &&
    older.length > 0 &&
    !head.data.some(({ id }) => older.some((row) => row.id === id));
  useEffect(() => {
    if (gap) void queries.resetQueries({ queryKey: [...key, 'log'] });
  }, [gap, key, queries]);

  const deliveries = useMemo(() => {
    const fresh = head?.data ?? [];
    const known = new Set(fresh.map(({ id }) => id));
    return [...fresh, ...older.filter(({ id }) => !known.has(id))];
  }, [head, older]);
  return { log, deliveries, isOutdated };
}

/**
 * Refetches all loaded pages after someone enabled or disabled the endpoint, which changes held and pending deliveries.
 */
function useReadAnew(path: string, status: Endpoint['status']): void {
  const queries = useQueryClient();
  const before = useRef(status);
  useEffect(() => {
    if (before.current === status) return;
    before.current = status;
    void queries.invalidateQueries({
      predicate: ({ queryKey }) => queryKey[0] === path && queryKey.at(-1) === 'log',
    });
  }, [path, status, queries]);
}
