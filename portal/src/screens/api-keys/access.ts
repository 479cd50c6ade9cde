import type { ApiKey } from '../../api/types.ts';
import { money } from '../../components/format.ts';

type Scopes = ApiKey['scopes'];

/** The choices of a new key's scopes. Null has every scope. */
export const PRESETS: Readonly<Record<string, Scopes>> = {
  'Full access': null,
  Storefront: ['catalog:read'],
  Fulfillment: [
    'catalog:read',
    'orders:read',
    'orders:write',
    'esims:read',
    'esims:write',
    'install:read',
    'topups:write',
    'events:read',
  ],
};

const asText = (scopes: Scopes): string => (scopes === null ? '' : scopes.toSorted().join(', '));

/** The preset with the key's scopes, otherwise the scopes themselves. */
export function accessInWords({ scopes }: ApiKey): string {
  const preset = Object.keys(PRESETS).find((name) => asText(PRESETS[name]!) === asText(scopes));
  return preset ?? asText(scopes);
}

/** `up to $250.00 a day`, or null without a limit. */
export const limitInWords = ({ spend_limit: limit }: ApiKey): string | null =>
  limit && `up to ${money(limit.amount)} a day`;
