import { createHash } from 'node:crypto';
import {
  type CatalogPackage,
  NAME_LENGTH,
  NOTES_LENGTH,
  priceWithMargin,
  type Region,
  SALE_NOTE_LENGTH,
  SPEED_POLICY_LENGTH,
} from '../catalog/index.js';
import type { LivePackageRule, LiveProviderName } from '../config/index.js';
import type { ProviderCost, ProviderPackage } from '../providers/index.js';

/** A provider's package in the form of the live catalog, with its source. */
export interface LivePackage {
  readonly item: CatalogPackage;
  readonly upstreamId: string;
  readonly cost: ProviderCost;
}

/** The operator's settings for live packages. */
export interface SalesTerms {
  /** Margin on the cost in basis points. */
  readonly marginBps: number;
  readonly rules: readonly LivePackageRule[];
}

/** Short provider names in package ids. Partners see them, so they reveal nothing about the provider. */
const ID_PARTS: Readonly<Record<LiveProviderName, string>> = { esim_access: 'a', zendit: 'z' };
/** From this many countries on, a package without a region name counts as global. */
const GLOBAL_COUNTRIES = 50;
const MICROS_PER_MINOR_UNIT = 10_000;

/**
 * Null for packages that cannot be sold: no country, no days, or a price without two decimals. A package that the rules
 * withhold from this provider becomes an unavailable package.
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
      terms: {
        ...offered.terms,
        regionName: toShownText(offered.terms.regionName, NAME_LENGTH),
        variant: toShownText(offered.terms.variant, NAME_LENGTH),
        saleNote: toShownText(offered.terms.saleNote, SALE_NOTE_LENGTH),
      },
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

/** Prices use hundredths: yen have none, dinars have thousandths. */
function hasTwoDecimals(currency: string): boolean {
  if (!/^[A-Z]{3}$/.test(currency)) return false;
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.resolvedOptions().maximumFractionDigits === 2;
}

/** Stable forever, because orders and eSIMs refer to it. Readable if the provider's own id allows it. */
function livePackageId(provider: string, { kind, upstreamId }: ProviderPackage): string {
  const idPart = new Map<string, string>(Object.entries(ID_PARTS)).get(provider);
  if (idPart === undefined) throw new Error(`ID_PARTS does not name ${provider}`);
  const prefix = `pkg_${idPart}_${kind === 'topup' ? 'topup_' : ''}`;
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

/** The fields that rules examine. */
type RuledPackage = Pick<CatalogPackage, 'id' | 'kind' | 'coverage'>;

/**
 * Whether the operator's rules (`LIVE_PACKAGE_PROVIDERS`) let `provider` sell this package. The first matching rule
 * decides; without one, every provider that lists the package sells it. Top-ups follow no rule: only the provider that
 * issued an eSIM can top it up, and sold eSIMs must stay usable.
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

/** Words in the providers' region names: `Western Europe`, `South America`, `Middle East and North Africa`. */
const NAMES: readonly (readonly [RegExp, Region])[] = [
  [/\b(middle[ -]east|gulf|mena|gcc)\b/i, 'middle-east'],
  [/\b(latin|south|central)[ -]america\b/i, 'latin-america'],
  [/\bnorth[ -]america\b/i, 'north-america'],
  [/\bcaribbean\b/i, 'caribbean'],
  [/\bbalkans?\b/i, 'balkans'],
  [/\b(europe|scandinavia|nordics?)\b/i, 'europe'],
  [/\basia\b/i, 'asia'],
  [/\boceania\b/i, 'oceania'],
  [/\bafrica\b/i, 'africa'],
];
/** A provider region that spans two of our regions is assigned by its first name. */
const OF_TWO = /middle[ -]east\W+(and|&)\W+(north(ern)?\W+)?africa/i;

/** Our region for a provider's region name; null for no name, and for names of several regions. */
export function regionOf(name: string | null): Region | null {
  if (name === null) return null;
  if (OF_TWO.test(name)) return 'middle-east';
  const found = new Set(NAMES.filter(([pattern]) => pattern.test(name)).map(([, region]) => region));
  return found.size === 1 ? [...found][0]! : null;
}

/** Control and format characters, which break lines, hide text or reverse its direction. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;
const MARKUP = /<\/?[a-z!][^<>]*>/gi;

/**
 * A provider's text for display: one line without markup and control characters, cut to `maxLength` characters. Null
 * when nothing is left.
 */
export function toShownText(text: string | null, maxLength: number): string | null {
  if (text === null) return null;
  const plain = text.replaceAll(MARKUP, ' ').replaceAll(UNSEEN, ' ').replaceAll(/[<>]/g, ' ');
  const line = [...plain.replaceAll(/\s+/g, ' ').trim()];
  if (line.length === 0) return null;
  return line.length <= maxLength
    ? line.join('')
    : `${line
        .slice(0, maxLength - 1)
        .join('')
        .trimEnd()}…`;
}
