import { createHash } from 'node:crypto';
import { type CatalogPackage, NOTES_LENGTH, priceWithMargin, SPEED_POLICY_LENGTH } from '../catalog/index.js';
import type { LivePackageRule } from '../config/index.js';
import type { ProviderPackage, ProviderCost } from '../providers/index.js';
import { isSoldBy } from './package-rules.js';
import { regionOf } from './regions.js';
import { toShownText } from './shown-text.js';

/** A provider's package as the live catalogue keeps it, and where it comes from. */
export interface LivePackage {
  readonly item: CatalogPackage;
  readonly upstreamId: string;
  readonly cost: ProviderCost;
}

/** The operator's settings that live packages are made with. */
export interface SalesTerms {
  /** Hundredths of a percent on top of the cost. */
  readonly marginBps: number;
  readonly rules: readonly LivePackageRule[];
}

/** Short names in package ids; a partner sees them, so they say nothing about the provider. */
const ID_PARTS: Readonly<Record<string, string>> = { esim_access: 'a', zendit: 'z' };
/** From so many countries on a package without a region's name counts as global. */
const GLOBAL_COUNTRIES = 50;
const MICROS_PER_MINOR_UNIT = 10_000;

/**
 * Null for what cannot be sold: no country, no days, or a price without two decimals. What the rules keep this
 * provider from selling is a package that is not available.
 */
export function toLivePackage(
  provider: string,
  offered: ProviderPackage,
  { marginBps, rules }: SalesTerms,
): LivePackage | null {
  if (offered.coverage.length === 0 || offered.validityDays < 1) return null;
  if (!offered.unlimited && offered.dataBytes === null && offered.kind === 'base') return null;
  const { cost, suggestedRetail } = offered;
  const currency = cost.currency;
  if (!hasTwoDecimals(currency)) return null;
  const id = livePackageId(provider, offered);
  return {
    upstreamId: offered.upstreamId,
    cost,
    item: {
      id,
      mode: 'live',
      title: offered.title,
      ...placeOf(offered),
      coverage: offered.coverage,
      kind: offered.kind,
      dataBytes: offered.unlimited ? null : offered.dataBytes,
      unlimited: offered.unlimited,
      voiceMinutes: offered.voiceMinutes,
      smsCount: offered.smsCount,
      validityDays: offered.validityDays,
      activationPolicy: offered.activationPolicy,
      topupSupported: offered.topupSupported,
      networks: offered.networks,
      speedPolicy: toShownText(offered.speedPolicy, SPEED_POLICY_LENGTH),
      notes: toShownText(offered.notes, NOTES_LENGTH),
      price: { amount: priceWithMargin(cost.micros, marginBps), currency },
      costMicros: cost.micros,
      retailPrice:
        suggestedRetail?.currency === currency
          ? { amount: Math.round(suggestedRetail.micros / MICROS_PER_MINOR_UNIT), currency }
          : null,
      available: offered.available && isSoldBy(rules, provider, { ...offered, id }),
    },
  };
}

/** Prices are made of hundredths: yen have none, dinars have thousandths. */
function hasTwoDecimals(currency: string): boolean {
  if (!/^[A-Z]{3}$/.test(currency)) return false;
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.resolvedOptions().maximumFractionDigits === 2;
}

/** Stable for ever: orders and eSIMs name it. Readable where the provider's own id allows it. */
export function livePackageId(provider: string, { kind, upstreamId }: ProviderPackage): string {
  const prefix = `pkg_${ID_PARTS[provider] ?? provider}_${kind === 'topup' ? 'topup_' : ''}`;
  const readable = upstreamId.replaceAll(/[^A-Za-z0-9_-]/g, '-');
  const id = prefix + readable;
  if (readable === upstreamId && id.length <= 64) return id;
  const digest = createHash('sha256').update(upstreamId).digest('hex').slice(0, 12);
  return `${id.slice(0, 64 - digest.length - 1)}-${digest}`;
}

function placeOf(offered: ProviderPackage): Pick<CatalogPackage, 'type' | 'region'> {
  if (offered.coverage.length === 1) return { type: 'country', region: null };
  const region = regionOf(offered.regionName) ?? regionOf(offered.title);
  if (region) return { type: 'regional', region };
  const isGlobal = /global|world/i.test(offered.regionName ?? offered.title);
  if (isGlobal || offered.coverage.length >= GLOBAL_COUNTRIES) return { type: 'global', region: null };
  return { type: 'regional', region: null };
}
