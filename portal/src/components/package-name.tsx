import { useQuery } from '@tanstack/react-query';
import { packageQuery } from '../api/queries.ts';
import { useScope } from '../api/session.ts';
import type { Mode, Package } from '../api/types.ts';
import { counted } from './format.ts';

type Props = { id: string; mode: Mode; days?: number | null };

/** The allowance and the validity, as people say them: `Japan 3 GB, 15 days`. */
export function titleOf({ title, validity_days: validity }: Package, days: number | null = null): string {
  const shown = days ?? validity;
  return /\bdays?\b/i.test(title) && days === null ? title : `${title}, ${counted(shown, 'day')}`;
}

/** A package's name for people; its id until the name is known, or if the session may not read the catalog. */
export function usePackageName({ id, mode, days }: Props): string {
  const mayRead = useScope('catalog:read');
  const { data } = useQuery({ ...packageQuery(id, mode), enabled: mayRead });
  return data ? titleOf(data, days ?? null) : id;
}

export function PackageName(props: Props) {
  return usePackageName(props);
}
