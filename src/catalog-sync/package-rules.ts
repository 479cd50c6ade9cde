import type { CatalogPackage } from '../catalog/index.js';
import type { LivePackageRule } from '../config/index.js';

/** What a rule looks at. */
export type RuledPackage = Pick<CatalogPackage, 'id' | 'kind' | 'coverage'>;

/**
 * Whether `provider` may sell this package of its list by the operator's rules (`LIVE_PACKAGE_PROVIDERS`).
 * The first rule that matches decides; what none matches is sold by whoever lists it. Top-ups follow no rule:
 * only the provider that issued an eSIM can top it up, and eSIMs already sold must stay usable.
 */
export function isSoldBy(rules: readonly LivePackageRule[], provider: string, item: RuledPackage): boolean {
  if (item.kind === 'topup') return true;
  const rule = rules.find(({ selector }) => isAbout(selector, item));
  return rule === undefined || rule.provider === provider;
}

function isAbout(selector: LivePackageRule['selector'], { id, coverage }: RuledPackage): boolean {
  switch (selector.type) {
    case 'all':
      return true;
    case 'package':
      return selector.id === id;
    case 'country':
      return coverage.length === 1 && coverage[0] === selector.country;
  }
}
