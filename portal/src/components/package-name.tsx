import { useQuery } from '@tanstack/react-query';
import { packageQuery } from '../api/queries.ts';
import { useScope } from '../api/session.ts';
import type { Mode, Package } from '../api/types.ts';
import { capitalized, counted } from './format.ts';

type Props = { id: string; mode: Mode; days?: number | null };

const COUNTRIES = new Intl.DisplayNames(undefined, { type: 'region' });

/** The name of a country, a region or `global`. */
export function placeName(code: string): string {
  if (/^[A-Z]{2}$/.test(code)) return COUNTRIES.of(code) ?? code;
  return capitalized(code.replaceAll('-', ' '));
}

const bare = (text: string): string => text.toLowerCase().replaceAll(/\s/g, '');

function placeOf({ type, coverage, region, region_name: regionName }: Package): string | null {
  if (type === 'country') return coverage[0] === undefined ? null : placeName(coverage[0]);
  return type === 'global' ? 'Global' : (regionName ?? (region && placeName(region)));
}

/**
 * The place and the allowance, as people say them: `Japan 3 GB`. A title that does not name the allowance says something
 * else, so it stays.
 */
export function shortTitleOf(item: Package): string {
  const { title, data_label: label } = item;
  const place = placeOf(item);
  return place && label && bare(title).includes(bare(label)) ? `${place} ${label}` : title;
}

/** With the validity, unless the title has it: `Japan 3 GB, 15 days`. */
export function titleOf(item: Package, days: number | null = null): string {
  const title = shortTitleOf(item);
  const validity = counted(days ?? item.validity_days, 'day');
  return title.includes(` ${validity}`) ? title : `${title}, ${validity}`;
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
