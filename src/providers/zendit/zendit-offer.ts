import type { ProviderPackage, ProviderCost } from '../esim-provider.js';
import {
  type ResponseObject,
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
  textAt,
  textOrNullAt,
  ProviderResponseInvalid,
  valueAt,
} from '../http/index.js';
import { gigabytesToBytes } from './exact-bytes.js';
import { moneyAt, saleCostOf } from './zendit-money.js';
import { wordingOf } from './zendit-wording.js';

const COUNTRY = /^[A-Z]{2}$/;
/**
 * Reserved for the Canary Islands, and no country of ISO 3166-1. Zendit lists them as Spain and names them in the
 * offer's id only.
 */
const CANARY_ISLANDS = 'IC';
const GENERATION = /^[2-5]G$/;
const COUNTRY_NAMES = new Intl.DisplayNames(['en'], { type: 'region' });

/**
 * An offer as a base package and as a top-up: Zendit sells the same offer for a new eSIM and for an existing one, and
 * does not say which fit an eSIM, so they are matched by coverage.
 * @throws ProviderResponseInvalid for an offer that cannot be sold as a package: no fixed price, fees that cannot be
 * counted, no data, no country. The Canary Islands are none: sold as Spain, the eSIM would not work in Madrid.
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
  const regions = arrayOrEmptyAt(offer, 'regions').filter(
    (region) => typeof region === 'string' && region !== '',
  );
  const regionName = regions.length === 0 ? 'Global' : regions.join(', ');
  return { title: regionName, coverage, regionName };
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
    // 0 says that there are none; an unlimited number has no field of ours.
    voiceMinutes: countOrNullAt(offer, 'voiceMinutes') || null,
    smsCount: countOrNullAt(offer, 'smsNumber') || null,
    validityDays,
  };
}

/**
 * Only networks that are named, which no live offer seen so far does: its `roaming` has countries and speeds, and speeds
 * without an operator say nothing that a partner could show.
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
