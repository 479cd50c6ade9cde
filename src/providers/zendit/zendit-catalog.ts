import type { Logger } from 'pino';
import type { ProviderCost } from '../esim-provider.js';
import {
  arrayAt,
  arrayOrEmptyAt,
  asObject,
  booleanAt,
  countAt,
  countOrNullAt,
  integerAt,
  numberAt,
  objectAt,
  objectOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  textOrNullAt,
  valueAt,
} from '../http/index.js';
import type { PackageList, PackagePage, ProviderPackage } from '../live-provider.js';
import { gigabytesToBytes, moneyAt, saleCostOf } from './zendit-amounts.js';
import type { ZenditApi } from './zendit-api.js';
import { termsOf } from './zendit-terms.js';

/** Zendit allows 1,024. An offer with a hundred countries takes about 20 kB, and known clients use 50. */
const PAGE_SIZE = 100;
/** No catalog is that long; a provider with endless pages must not block us. */
const MAX_OFFERS = 100_000;
/** Divides the catalog timeout into page timeouts: one minute of five. */
const SHARE_OF_PAGE = 5;

/** Reads offers page by page. An unreadable offer is skipped and logged; it does not stop the others. */
export class ZenditCatalog implements PackageList {
  readonly says = 'everything';
  readonly kinds = ['base', 'topup'] as const;
  readonly pageTimeoutMs: number;

  constructor(
    private readonly api: ZenditApi,
    private readonly logger: Pick<Logger, 'warn'>,
    catalogTimeoutMs: number,
  ) {
    this.pageTimeoutMs = Math.ceil(catalogTimeoutMs / SHARE_OF_PAGE);
  }

  /** @throws ProviderUnavailable, ProviderOutcomeUnknown */
  async readPage(from: number, signal: AbortSignal): Promise<PackagePage> {
    if (from >= MAX_OFFERS) throw new ProviderResponseInvalid('total');
    const page = { limit: PAGE_SIZE, offset: from, timeoutMs: this.pageTimeoutMs };
    const answer = await this.api.getOffers(page, signal);
    const list = arrayAt(answer, 'list');
    const total = countAt(answer, 'total');
    const read = list.map(readable);
    const skipped = read.flatMap((each) => (each instanceof ProviderResponseInvalid ? [each.path] : []));
    if (skipped.length > 0) this.warn(skipped);
    const next = from + list.length;
    return {
      packages: read.flatMap((each) => (each instanceof ProviderResponseInvalid ? [] : each)),
      next: list.length === 0 || next >= total ? null : next,
    };
  }

  /** Logs the fields for which offers were skipped. `fee` means that prices are not what we assumed. */
  private warn(fields: readonly string[]): void {
    const why = [...new Set(fields)].sort();
    this.logger.warn({
      event: 'provider.offers_skipped',
      provider: 'zendit',
      skipped: fields.length,
      fields: why,
    });
  }
}

function readable(offer: unknown): readonly ProviderPackage[] | ProviderResponseInvalid {
  try {
    return toPackages(offer);
  } catch (error) {
    if (error instanceof ProviderResponseInvalid) return error;
    throw error;
  }
}

const COUNTRY = /^[A-Z]{2}$/;
/**
 * Reserved for the Canary Islands; not a country of ISO 3166-1. Zendit lists them as Spain and names them only in the
 * offer's id.
 */
const CANARY_ISLANDS = 'IC';
const GENERATION = /^[2-5]G$/;
const COUNTRY_NAMES = new Intl.DisplayNames(['en'], { type: 'region' });

/**
 * An offer as a base package and as a top-up. Zendit sells the same offer for new and existing eSIMs and does not say
 * which fit an eSIM, so they are matched by coverage.
 * @throws ProviderResponseInvalid for an offer that cannot be sold as a package: no fixed price, fees that cannot be
 * computed, no data, no country. The Canary Islands are excluded: sold as Spain, the eSIM would not work in Madrid.
 */
export function toPackages(value: unknown): readonly ProviderPackage[] {
  const offer = asObject(value, 'offer');
  if (textAt(offer, 'priceType') !== 'FIXED') throw new ProviderResponseInvalid('priceType');
  const upstreamId = textAt(offer, 'offerId');
  if (upstreamId.split('-').includes(CANARY_ISLANDS)) throw new ProviderResponseInvalid('country');
  const place = placeOf(offer);
  const allowance = allowanceOf(offer);
  const { tier, speedPolicy, notes } = wordingOf(offer, allowance.unlimited);
  const base: ProviderPackage = {
    upstreamId,
    kind: 'base',
    ...place,
    title: tier === null ? place.title : `${place.title}, ${tier}`,
    ...allowance,
    activationPolicy: 'on_first_use',
    topupSupported: true,
    networks: networksOf(offer),
    cost: saleCostOf(objectAt(offer, 'cost')),
    suggestedRetail: retailOf(offer),
    available: booleanAt(offer, 'enabled'),
    speedPolicy,
    notes,
    terms: termsOf(offer, {
      unlimited: allowance.unlimited,
      regionName: statedRegionOf(offer),
      tier,
      speedPolicy,
    }),
  };
  return [base, { ...base, kind: 'topup' }];
}

function placeOf(offer: ResponseObject): Pick<ProviderPackage, 'title' | 'coverage' | 'regionName'> {
  const country = textOrNullAt(offer, 'country');
  const visited = arrayAt(offer, 'roaming').map((item) => textAt(asObject(item, 'roaming'), 'country'));
  const coverage = [...new Set([...(country === null ? [] : [country]), ...visited])]
    .filter((code) => COUNTRY.test(code) && code !== CANARY_ISLANDS)
    .sort();
  if (coverage.length === 0) throw new ProviderResponseInvalid('roaming');
  if (country !== null) return { title: COUNTRY_NAMES.of(country) ?? country, coverage, regionName: null };
  const regionName = statedRegionOf(offer) ?? 'Global';
  return { title: regionName, coverage, regionName };
}

function statedRegionOf(offer: ResponseObject): string | null {
  const regions = arrayOrEmptyAt(offer, 'regions').filter(
    (region) => typeof region === 'string' && region !== '',
  );
  return regions.length === 0 ? null : regions.join(', ');
}

function allowanceOf(
  offer: ResponseObject,
): Pick<ProviderPackage, 'dataBytes' | 'unlimited' | 'voiceMinutes' | 'smsCount' | 'validityDays'> {
  const unlimited = booleanAt(offer, 'dataUnlimited');
  const dataBytes = unlimited ? null : gigabytesToBytes(numberAt(offer, 'dataGB'), 'dataGB');
  if (dataBytes === 0) throw new ProviderResponseInvalid('dataGB');
  const validityDays = countAt(offer, 'durationDays');
  if (validityDays === 0) throw new ProviderResponseInvalid('durationDays');
  return {
    dataBytes,
    unlimited,
    // 0 means none; we have no field for an unlimited number.
    voiceMinutes: countOrNullAt(offer, 'voiceMinutes') || null,
    smsCount: countOrNullAt(offer, 'smsNumber') || null,
    validityDays,
  };
}

/**
 * Named networks only, which no live offer has shown so far. `roaming` has countries and speeds, and a speed without an
 * operator is of no use to partners.
 */
function networksOf(offer: ResponseObject): ProviderPackage['networks'] {
  return arrayAt(offer, 'roaming').flatMap((item) => {
    const roaming = asObject(item, 'roaming');
    const country = textAt(roaming, 'country');
    return arrayOrEmptyAt(roaming, 'networks').map((each) => {
      const network = asObject(each, 'networks');
      return {
        country,
        operator: textOrNullAt(network, 'brandName') ?? textAt(network, 'brand'),
        generations: arrayOrEmptyAt(network, 'dataSpeeds').filter(isGeneration),
      };
    });
  });
}

function isGeneration(speed: unknown): speed is string {
  return typeof speed === 'string' && GENERATION.test(speed);
}

function retailOf(offer: ResponseObject): ProviderCost | null {
  const price = objectOrNullAt(offer, 'price');
  if (!price || !valueAt(price, 'suggestedFixed')) return null;
  return integerAt(price, 'suggestedFixed') > 0 ? moneyAt(price, 'suggestedFixed') : null;
}

/** Text that distinguishes offers with equal amounts: three of four are "unlimited", in tiers of speed. */
interface OfferWording extends Pick<ProviderPackage, 'speedPolicy' | 'notes'> {
  /** For example `Faster`; null when there is only one tier. */
  readonly tier: string | null;
}

/** Sub-types that name a place or product instead of a quality. */
const PLACE_OR_PRODUCT = /\b(e-?sims?|data|local|country|regional|global)\b/i;
const ABOUT_SPEED = /\d\s*[kmg]b(?:it)?(?:ps|\/s)|throttl|reduced|slow|speed|fair[ -]us/i;

/** The offer's text in `subTypes`, `shortNotes` and `notes`. @throws ProviderResponseInvalid */
function wordingOf(offer: ResponseObject, unlimited: boolean): OfferWording {
  const tier = unlimited ? tierOf(offer) : null;
  const [short, long] = [textOrNullAt(offer, 'shortNotes'), textOrNullAt(offer, 'notes')];
  const said = sentencesOf(short).concat(sentencesOf(long)).filter(isAboutSpeed);
  const policy = [...new Set(said)].join(' ');
  return {
    tier,
    speedPolicy: policy === '' ? tier : policy,
    notes: long ?? short,
  };
}

function tierOf(offer: ResponseObject): string | null {
  const tiers = arrayOrEmptyAt(offer, 'subTypes').filter(
    (each): each is string => typeof each === 'string' && each.trim() !== '' && !PLACE_OR_PRODUCT.test(each),
  );
  return tiers.length === 0 ? null : tiers.join(', ');
}

/** Splits at the ends of lines and sentences; the point in `1.25 Mbps` does not end one. */
function sentencesOf(text: string | null): readonly string[] {
  return (text ?? '').split(/(?<=[.!;])\s+|[\r\n]+|<br\s*\/?>/i).map((sentence) => sentence.trim());
}

function isAboutSpeed(sentence: string): boolean {
  return ABOUT_SPEED.test(sentence);
}
