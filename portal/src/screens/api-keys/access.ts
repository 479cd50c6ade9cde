import type { ApiKey } from '../../api/types.ts';
import { counted } from '../../components/format.ts';

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

/** The permissions of each choice, for the form of a new key. */
export const ACCESS = [
  ['Full access', 'Full access', 'Every scope, including scopes added later.'],
  ['Storefront', 'Storefront', 'Reads the catalog. Cannot order or read eSIMs.'],
  ['Fulfillment', 'Fulfillment', 'Orders, eSIMs, install data and top-ups. Cannot read the wallet.'],
] as const;

/** The name of the preset with the key's scopes, and the scopes in short. */
export function accessInWords({ scopes }: ApiKey): readonly [name: string, scopes: string] {
  const preset = Object.keys(PRESETS).find((name) => asText(PRESETS[name]!) === asText(scopes));
  if (scopes === null) return [preset ?? 'Full access', 'All scopes'];
  return [preset ?? 'Custom', scopes.length > MAX_NAMED ? counted(scopes.length, 'scope') : asText(scopes)];
}

/** More scopes are counted. */
const MAX_NAMED = 2;
