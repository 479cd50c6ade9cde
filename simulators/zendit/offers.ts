import type { Offer, Roaming } from './contract.ts';

const LISTED_AT = '2026-01-05T08:00:00Z';

interface OfferTerms {
  readonly id: string;
  readonly country?: string;
  readonly region?: string;
  readonly roaming: readonly string[];
  /** 0 for unlimited. */
  readonly dataGB: number;
  readonly days: number;
  readonly cost: number;
  readonly divisor?: number;
  readonly enabled?: boolean;
  readonly voiceMinutes?: number;
  readonly smsNumber?: number;
}

/** Behavior of `GET /esim/offers`. */
export interface OfferHabits {
  /** Listed in place of the sold offers. */
  readonly instead: readonly Offer[] | null;
  /** How often the page at an offset returns 503 from now on. */
  readonly brokenPages: Record<number, number>;
}

const COUNTRIES = ['FR', 'ES', 'DE', 'IT', 'US', 'JP', 'TH', 'TR', 'AE', 'BR', 'GB'];
const EUROPE = [
  'AT',
  'BE',
  'CH',
  'CZ',
  'DE',
  'DK',
  'ES',
  'FI',
  'FR',
  'GB',
  'GR',
  'IT',
  'NL',
  'PL',
  'PT',
  'SE',
];
const ASIA = ['HK', 'ID', 'JP', 'KR', 'MY', 'PH', 'SG', 'TH', 'TW', 'VN'];

const TERMS: readonly OfferTerms[] = [
  ...COUNTRIES.flatMap((country, i): OfferTerms[] => [
    { id: `ESIM-${country}-7D-1GB`, country, roaming: [country], dataGB: 1, days: 7, cost: 120 + i * 15 },
    { id: `ESIM-${country}-30D-5GB`, country, roaming: [country], dataGB: 5, days: 30, cost: 450 + i * 40 },
  ]),
  { id: 'ESIM-EUROPE-30D-3GB', region: 'Europe', roaming: EUROPE, dataGB: 3, days: 30, cost: 520 },
  { id: 'ESIM-EUROPE-30D-10GB', region: 'Europe', roaming: EUROPE, dataGB: 10, days: 30, cost: 1400 },
  { id: 'ESIM-ASIA-15D-1.5GB', region: 'Asia', roaming: ASIA, dataGB: 1.5, days: 15, cost: 390 },
  {
    id: 'ESIM-GLOBAL-30D-1GB',
    region: 'Global',
    roaming: [...EUROPE, ...ASIA, 'US', 'CA'],
    dataGB: 1,
    days: 30,
    cost: 900,
  },
  { id: 'ESIM-FR-10D-UNLIMITED', country: 'FR', roaming: ['FR'], dataGB: 0, days: 10, cost: 2200 },
  { id: 'ESIM-EUROPE-7D-UNLIMITED', region: 'Europe', roaming: EUROPE, dataGB: 0, days: 7, cost: 2600 },
  // A price in tenths of a cent, and an amount of data without an exact binary fraction.
  { id: 'ESIM-PT-1D-0.1GB', country: 'PT', roaming: ['PT'], dataGB: 0.1, days: 1, cost: 455, divisor: 1000 },
  {
    id: 'ESIM-GB-30D-20GB-VOICE',
    country: 'GB',
    roaming: ['GB'],
    dataGB: 20,
    days: 30,
    cost: 2450,
    voiceMinutes: 120,
    smsNumber: 50,
  },
  { id: 'ESIM-CU-7D-1GB', country: 'CU', roaming: ['CU'], dataGB: 1, days: 7, cost: 1900, enabled: false },
];

/** The catalog: country, regional and unlimited offers, each also usable on an existing eSIM. */
export function listedOffers(): Map<string, Offer> {
  return new Map(TERMS.map((terms) => [terms.id, toOffer(terms)]));
}

/** An offer of 1 GB for 7 days in Spain, with changes. */
export function offerLike(offerId: string, changes: Partial<Offer> = {}): Offer {
  const terms = { id: offerId, country: 'ES', roaming: [], dataGB: 1, days: 7, cost: 100 };
  return { ...toOffer(terms), ...changes };
}

/** One tier of "unlimited"; a live account has three at three prices. */
export function unlimitedTier(tier: string, speed: string, fixed: number): Offer {
  const offer = offerLike(`ESIM-ES-7D-UNLIMITED-${tier.toUpperCase()}`);
  return {
    ...offer,
    subTypes: [tier],
    dataGB: 0,
    dataUnlimited: true,
    cost: { ...offer.cost, fixed },
    notes: `Unlimited data for 7 days. 1 GB a day at full speed, then ${speed} until midnight.`,
    shortNotes: '',
  };
}

function toOffer(terms: OfferTerms): Offer {
  const divisor = terms.divisor ?? 100;
  const fixed = Math.round(terms.cost * 1.4);
  return {
    offerId: terms.id,
    brand: 'ESIM',
    brandName: 'Simulated eSIM',
    country: terms.country ?? '',
    regions: terms.region === undefined ? [] : [terms.region],
    subTypes: [terms.region === undefined ? 'Local eSIM' : 'Regional eSIM'],
    dataGB: terms.dataGB,
    dataUnlimited: terms.dataGB === 0,
    dataSpeeds: ['4G', '5G'],
    durationDays: terms.days,
    enabled: terms.enabled ?? true,
    voiceMinutes: terms.voiceMinutes ?? 0,
    voiceUnlimited: false,
    smsNumber: terms.smsNumber ?? 0,
    smsUnlimited: false,
    roaming: terms.roaming.map(toRoaming),
    cost: { currency: 'USD', currencyDivisor: divisor, fixed: terms.cost, fee: 0, feePct: 0, discount: 0 },
    price: { currency: 'USD', currencyDivisor: divisor, fixed, fee: 0, margin: 40, suggestedFixed: fixed },
    priceType: 'FIXED',
    productType: 'ESIM',
    notes: `${terms.dataGB === 0 ? 'Unlimited data' : `${terms.dataGB} GB`} for ${terms.days} days`,
    shortNotes: '',
    createdAt: LISTED_AT,
    updatedAt: LISTED_AT,
  };
}

/** Names only some networks, like the real provider. */
function toRoaming(country: string): Roaming {
  const dataSpeeds = ['4G', '5G'];
  if (country !== 'FR') return { country, dataSpeeds };
  return { country, dataSpeeds, networks: [{ brand: 'ORANGE_FR', brandName: 'Orange', dataSpeeds }] };
}
