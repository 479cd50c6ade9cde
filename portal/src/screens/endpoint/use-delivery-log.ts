import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo } from 'react';
import { get, type Query } from '../../api/client.ts';
import { deliveriesOf, LIVE_INTERVAL_MS } from '../../api/queries.ts';
import type { Delivery, Page } from '../../api/types.ts';

const PAGE = 50;
/** So many pages are read again while something in them is still under way. */
const PAGES_KEPT_FRESH = 4;

/**
 * The deliveries of an endpoint, newest first: they are of its mode. The newest page is asked for every two seconds; older ones when they
 * are scrolled to, so that a long log neither moves under the reader nor costs more the longer it is.
 */
export function useDeliveryLog(endpointId: string, filters: Query) {
  const queries = useQueryClient();
  const path = deliveriesOf(endpointId);
  const key = useMemo(() => [path, filters], [path, filters]);
  const read = useCallback(
    (cursor: string, signal: AbortSignal) =>
      get<Page<Delivery>>(path, { ...filters, limit: PAGE, ...(cursor === '' ? {} : { cursor }) }, signal),
    [path, filters],
  );
  const log = useInfiniteQuery({
    queryKey: [...key, 'log'],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: ({ state }) => {
      const read = state.data?.pages ?? [];
      const open = read.some((page) => page.data.some(({ status }) => status === 'pending'));
      return open && read.length <= PAGES_KEPT_FRESH ? LIVE_INTERVAL_MS : false;
    },
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  const newest = useQuery({
    queryKey: [...key, 'newest'],
    queryFn: ({ signal }) => read('', signal),
    enabled: log.isSuccess,
    refetchInterval: LIVE_INTERVAL_MS,
  });

  const older = useMemo(() => log.data?.pages.flatMap((page) => page.data) ?? [], [log.data]);
  const head = newest.data;
  // More came at once than a page holds: what is between is read by beginning anew.
  const gap =
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
  return { log, deliveries, refresh: () => void newest.refetch() };
}
