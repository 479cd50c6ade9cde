import type { CatalogPackage } from '../package.js';
import { MAGIC_PACKAGES } from './magic-packages.js';

/**
 * Whether `topup` fits an eSIM that was bought with `base`, in either mode.
 *
 * It fits when both are of the same mode and type and cover exactly the same countries (a wider top-up would add
 * coverage the eSIM's profile does not have, a narrower one would lose some), and the base package allows top-ups.
 * An unlimited base accepts top-ups that add days only: more data would add nothing to it. A base with a data
 * allowance accepts both sorts, but never an unlimited top-up, which would leave its usage without a total (D24).
 * The magic top-up of the sandbox fits every sandbox eSIM, whatever its base.
 *
 * The eSIM's status and whether `topup` is still sold (`available`) are for the caller to check.
 */
export function topupPackageMatches(base: CatalogPackage, topup: CatalogPackage): boolean {
  if (topup.kind !== 'topup' || topup.mode !== base.mode) return false;
  if (topup.mode === 'sandbox' && topup.id === MAGIC_PACKAGES.topupFail) return true;
  if (!topupTermsMatch(base, topup)) return false;
  return topup.type === base.type && sameCountries(topup.coverage, base.coverage);
}

/** The part of the rule that holds wherever both are valid: what may be added to what. */
export function topupTermsMatch(base: CatalogPackage, topup: CatalogPackage): boolean {
  if (!base.topupSupported || topup.unlimited) return false;
  return !(base.unlimited && topup.dataBytes !== null);
}

function sameCountries(a: readonly string[], b: readonly string[]): boolean {
  // Compared as sets: Live coverage comes from providers, and a repeated country there changes nothing.
  const inA = new Set(a);
  const inB = new Set(b);
  return inA.size === inB.size && a.every((country) => inB.has(country));
}
