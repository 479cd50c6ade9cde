import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import type { Mode, Page } from './types.ts';

/** The newest object of a list, for use in an example; undefined when there is none, or while loading. */
export function useNewest<T>(path: 'orders' | 'esims', mode: Mode): T | undefined {
  const { data } = useQuery({
    queryKey: [path, mode, 'newest'],
    queryFn: async ({ signal }) => (await get<Page<T>>(path, { mode, limit: 1 }, signal)).data[0] ?? null,
  });
  return data ?? undefined;
}
