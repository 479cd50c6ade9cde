import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { DAY_MS } from '../common/durations.js';
import { sql } from '../infra/database/index.js';
import type { CatalogPackage } from './package.js';
import { MAGIC_PACKAGES } from './sandbox/sandbox-packages.js';

/** Age at which a provider's list of top-ups for a base package is refreshed. */
export const TOPUP_FITS_FRESH_MS = DAY_MS;

/** Which live top-ups fit which live base package, if the provider says so; otherwise `topupPackageMatches` decides. */
@Injectable()
export class TopupFits {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Ids of the top-ups that are known to fit eSIMs of the package; none before the provider was queried. Null for a
   * package whose provider does not say: top-ups are then matched by coverage.
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

  /** Requests a refresh by the worker if the package's list is unknown or old. The caller does not wait. */
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
 * It fits when both have the same mode and type and cover exactly the same countries, and the base package allows
 * top-ups. A wider top-up would add coverage that the eSIM's profile does not have; a narrower one would lose some. An
 * unlimited base accepts top-ups that add days only, because more data would add nothing. A base with a data allowance
 * accepts both kinds, but never an unlimited top-up, which would leave its usage without a total (D24). Passes with an
 * allowance per day accept days of such passes, and nothing else does. The sandbox's failing magic top-up fits every
 * sandbox eSIM, whatever its base, and the queued one fits those with one data allowance for all days.
 *
 * The caller checks the eSIM's status and whether `topup` is still sold (`available`).
 */
export function topupPackageMatches(base: CatalogPackage, topup: CatalogPackage): boolean {
  if (topup.kind !== 'topup' || topup.mode !== base.mode) return false;
  if (topup.mode === 'sandbox' && topup.id === MAGIC_PACKAGES.topupFail) return true;
  if (!topupTermsMatch(base, topup)) return false;
  if ((base.terms.plan === 'daily') !== (topup.terms.plan === 'daily')) return false;
  if (topup.mode === 'sandbox' && topup.id === MAGIC_PACKAGES.topupQueued) return true;
  return topup.type === base.type && sameCountries(topup.coverage, base.coverage);
}

/** The part of the rule that ignores coverage: whether one plan can extend the other. */
export function topupTermsMatch(base: CatalogPackage, topup: CatalogPackage): boolean {
  if (!base.topupSupported || (topup.unlimited && !base.unlimited)) return false;
  return !(base.unlimited && topup.dataBytes !== null);
}

function sameCountries(a: readonly string[], b: readonly string[]): boolean {
  // Compare as sets: Live coverage comes from providers and may repeat a country.
  const inA = new Set(a);
  const inB = new Set(b);
  return inA.size === inB.size && a.every((country) => inB.has(country));
}
