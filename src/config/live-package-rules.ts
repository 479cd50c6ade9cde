import type { EnvReader } from './env-reader.js';

/** Providers that can be connected, by their names in orders and packages. */
export const LIVE_PROVIDER_NAMES = ['esim_access', 'zendit'] as const;
export type LiveProviderName = (typeof LIVE_PROVIDER_NAMES)[number];

/** The live packages of a rule. A country selects packages that cover exactly that country. */
export type LivePackageSelector =
  | { readonly type: 'package'; readonly id: string }
  | { readonly type: 'country'; readonly country: string }
  | { readonly type: 'all' };

/** The provider that sells the selected packages; null: none. */
export interface LivePackageRule {
  readonly selector: LivePackageSelector;
  readonly provider: LiveProviderName | null;
}

const NOBODY = 'none';
const PACKAGE_ID = /^pkg_[A-Za-z0-9_-]{1,60}$/;
const COUNTRY = /^[A-Z]{2}$/;

/** `selector=provider[,selector=provider]`; the first match wins. Problems name positions, never values. */
export function parseLivePackageRules(read: EnvReader): readonly LivePackageRule[] {
  const text = read.text('LIVE_PACKAGE_PROVIDERS');
  if (text === undefined) return [];
  const rules: LivePackageRule[] = [];
  const wrong: string[] = [];
  const seen = new Set<string>();
  text.split(',').forEach((part, i) => {
    const [selector = '', provider = '', ...rest] = part.split('=').map((word) => word.trim());
    const rule = rest.length > 0 ? 'must be selector=provider' : parseRule(selector, provider);
    if (typeof rule === 'string') wrong.push(`rule ${i + 1} ${rule}`);
    else if (seen.has(selector)) wrong.push(`rule ${i + 1} repeats a selector`);
    else if (seen.has('*')) wrong.push(`rule ${i + 1} has no effect, because it comes after *`);
    else rules.push(rule);
    seen.add(selector);
  });
  if (wrong.length > 0) read.problems.push(`LIVE_PACKAGE_PROVIDERS: ${wrong.join('; ')}`);
  return wrong.length > 0 ? [] : rules;
}

function parseRule(selectorText: string, providerText: string): LivePackageRule | string {
  const selector = parseSelector(selectorText);
  if (!selector) return 'must begin with a package id, a country such as FR, or *';
  if (providerText === NOBODY) return { selector, provider: null };
  const provider = LIVE_PROVIDER_NAMES.find((name) => name === providerText);
  if (!provider) return `must name one of ${LIVE_PROVIDER_NAMES.join(', ')} or ${NOBODY}`;
  return { selector, provider };
}

function parseSelector(text: string): LivePackageSelector | null {
  if (text === '*') return { type: 'all' };
  if (COUNTRY.test(text)) return { type: 'country', country: text };
  return PACKAGE_ID.test(text) ? { type: 'package', id: text } : null;
}
