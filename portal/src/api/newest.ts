import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import type { Mode, Page } from './types.ts';

/** The newest object of a list, for an example that names it; undefined: there is none, or it is not known yet. */
export function useNewest<T>(path: 'orders' | 'esims', mode: Mode): T | undefined {
  const { data } = useQuery({
    queryKey: [path, mode, 'newest'],
    queryFn: async ({ signal }) => (await get<Page<T>>(path, { mode, limit: 1 }, signal)).data[0] ?? null,
  });
  return data ?? undefined;
}
