import { useQuery } from '@tanstack/react-query';
import { get } from '../api/client.ts';
import { useScope, useSession } from '../api/session.ts';
import type { ListedPackage, Mode, Page } from '../api/types.ts';
import { orderCommand } from './commands.ts';

/**
 * A command that places an order, for `packageId` if the partner's usual package is known. In Live, where catalogs
 * differ, it is otherwise for the cheapest package.
 */
export function useOrderCommand(mode: Mode, packageId?: string): string {
  const { api_url: apiUrl } = useSession();
  const mayRead = useScope('catalog:read');
  const { data: cheapest } = useQuery({
    queryKey: ['catalog', mode, 'cheapest'],
    enabled: mayRead && mode === 'live' && packageId === undefined,
    queryFn: async ({ signal }) => {
      const query = { mode, kind: 'base', sort: 'price', limit: 1 };
      return (await get<Page<ListedPackage>>('catalog', query, signal)).data[0]?.id ?? null;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  return orderCommand(apiUrl, mode, packageId ?? cheapest ?? undefined);
}
