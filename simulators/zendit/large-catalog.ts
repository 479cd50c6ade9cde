import { pick } from '../pick.ts';
import type { Offer } from './contract.ts';
import { offerLike } from './offers.ts';

/** Number of eSIM offers that a live account listed. */
const LISTED = 4_510;
/** 3,301 of the 4,510 were unlimited, in three tiers. */
const UNLIMITED_SHARE = 3_301 / 4_510;
/** 96 % of them had an empty `roaming`. */
const EMPTY_ROAMING_SHARE = 0.96;

const COUNTRIES = 'AE AU BR CA DE EG ES FR GB GR ID IN IT JP KR MA MX PT SG TH TR US VN ZA'.split(' ');
/** [name, countries] in the form of the recorded names. */
const REGIONS: readonly (readonly [string, readonly string[]])[] = [
  ['Western Europe', ['DE', 'ES', 'FR', 'IC', 'IT', 'PT']],
  ['South America', ['AR', 'BR', 'CL', 'PE']],
  ['Middle East and North Africa', ['AE', 'EG', 'MA']],
  ['South East Asia', ['ID', 'SG', 'TH', 'VN']],
];
/** [tier, gigabytes a day at full speed, reduced speed] */
const TIERS = [
  ['Fast', 1, '512 kbps'],
  ['Faster', 1, '1.25 Mbps'],
  ['Fastest', 2, '2 Mbps'],
] as const;
const GIGABYTES = [0.1, 0.5, 1, 1.5, 3, 5, 10, 20, 50];
const DAYS = [1, 3, 5, 7, 10, 15, 30];
const SPEEDS: readonly (readonly string[])[] = [['3G', '4G'], ['4G'], ['4G', '5G'], ['2G'], []];

/**
 * Offers of the recorded form, as many as a live account lists, with their recorded shares of unlimited offers and empty
 * `roaming`. They are the same in every run.
 */
export function largeOffers(count = LISTED): Offer[] {
  return Array.from({ length: count }, (_, i) => toOffer(i));
}

function toOffer(i: number): Offer {
  const [place, countries] = i % 20 === 0 ? pick(REGIONS, i, 2) : ['', [pick(COUNTRIES, i, 2)]];
  const durationDays = pick(DAYS, i, 3);
  const unlimited = (i * Math.sqrt(5)) % 1 < UNLIMITED_SHARE;
  const hasRoaming = place !== '' || (i * Math.sqrt(7)) % 1 >= EMPTY_ROAMING_SHARE;
  const [tier, gigabytesADay, speed] = pick(TIERS, i, 11);
  const dataGB = unlimited ? 0 : pick(GIGABYTES, i, 13);
  const voiceMinutes = i % 40 === 0 ? 60 : 0;
  const like = offerLike(`ESIM-L${i}`);
  return {
    ...like,
    country: place === '' ? countries[0]! : '',
    regions: place === '' ? [] : [place],
    subTypes: unlimited ? [tier] : [],
    dataGB,
    dataUnlimited: unlimited,
    dataSpeeds: pick(SPEEDS, i, 19),
    durationDays,
    voiceMinutes,
    smsNumber: voiceMinutes === 0 ? 0 : 20,
    roaming: hasRoaming ? countries.map((country) => ({ country, dataSpeeds: pick(SPEEDS, i, 17) })) : [],
    cost: { ...like.cost, fixed: 100 + i },
    price: { ...like.price, suggestedFixed: i % 17 === 0 ? 0 : 200 + i },
    notes: unlimited
      ? `Unlimited data for ${durationDays} days. ${gigabytesADay} GB a day at full speed, then ${speed} until midnight.`
      : `${dataGB} GB for ${durationDays} days, offer ${i}`,
  };
}
