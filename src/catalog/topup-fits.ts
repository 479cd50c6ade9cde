import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { DAY_MS } from '../common/day.js';
import { sql } from '../infra/database/index.js';
import type { CatalogPackage } from './package.js';
import { MAGIC_PACKAGES } from './sandbox/sandbox-packages.js';

/** The provider's list of the top-ups of a base package is asked for again after this. */
export const TOPUP_FITS_FRESH_MS = DAY_MS;

/** Which live top-ups fit which live base package, where the provider says so; otherwise `topupPackageMatches` decides. */
@Injectable()
export class TopupFits {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Ids of the top-ups that fit eSIMs of the package, as far as they are known: none before the provider was asked.
   * Null for a package whose provider does not say, so that top-ups are matched by the places they cover.
   */
  async find(baseId: string, manager: EntityManager = this.manager): Promise<ReadonlySet<string> | null> {
    const { rows } = await sql<{ ids: string[] }>(
      manager,
      `SELECT ARRAY (SELECT f.topup_id FROM topup_fits f WHERE f.base_id = s.package_id) AS ids
       FROM package_sources s WHERE s.package_id = $1 AND s.fits = 'list'`,
      [baseId],
    );
    return rows[0] ? new Set(rows[0].ids) : null;
  }

  /** Makes the worker ask the provider soon when its list for this package is unknown or old. The caller does not wait. */
  async want(baseId: string): Promise<void> {
    await sql(
      this.manager,
      `UPDATE package_sources SET topups_wanted_at = now()
       WHERE package_id = $1 AND fits = 'list'
         AND (topups_asked_at IS NULL OR topups_asked_at < now() - $2 * interval '1 millisecond')
         AND (topups_wanted_at IS NULL OR topups_wanted_at <= topups_asked_at)`,
      [baseId, TOPUP_FITS_FRESH_MS],
    );
  }
}

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
