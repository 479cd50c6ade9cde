import { type Generation, GENERATIONS, type PackageTerms } from '../../catalog/index.js';
import { arrayAt, arrayOrEmptyAt, asObject, type ResponseObject } from '../http/index.js';
import { kbpsIn } from '../stated-speed.js';
import { gigabytesToBytes } from './zendit-amounts.js';

const FULL_SPEED_A_DAY = /(\d+(?:\.\d+)?)\s*GB\s+(?:a|per)\s+day\s+at\s+(?:full|high)\s+speed/i;

/** An offer's statements beyond its allowance (D57). @throws ProviderResponseInvalid */
export function termsOf(
  offer: ResponseObject,
  said: {
    readonly unlimited: boolean;
    readonly regionName: string | null;
    readonly tier: string | null;
    readonly speedPolicy: string | null;
  },
): PackageTerms {
  const { unlimited, regionName, tier, speedPolicy } = said;
  return {
    dataUnit: 'decimal',
    plan: unlimited ? 'unlimited' : 'total',
    maxDays: null,
    fairUse: fairUseOf(speedPolicy),
    exitCountries: null,
    maxGeneration: newestOf(offer),
    hotspot: null,
    installWithinDays: null,
    // A further plan waits until the eSIM's current plan ends.
    topup: { kinds: ['plan'], behavior: 'queues', maxCount: null },
    regionName,
    variant: tier,
    minRetailPrice: null,
    saleNote: null,
  };
}

/** Only from a sentence of a known form, such as `1 GB a day at full speed, then 512 kbps until midnight.` */
function fairUseOf(speedPolicy: string | null): PackageTerms['fairUse'] {
  const stated = FULL_SPEED_A_DAY.exec(speedPolicy ?? '');
  if (!stated) return null;
  const after = speedPolicy!.slice(stated.index + stated[0].length);
  const kbps = kbpsIn(after);
  return {
    fullSpeedBytes: gigabytesToBytes(Number(stated[1]), 'notes'),
    per: 'day',
    then: kbps === null ? 'unknown' : 'slower',
    kbps,
    resets: /\bmidnight\b/i.test(after) ? 'midnight' : 'unknown',
  };
}

/** The newest generation that the offer states, for itself or a country: most offers have no `roaming`. */
function newestOf(offer: ResponseObject): Generation | null {
  const speeds = [offer, ...arrayAt(offer, 'roaming').map((item) => asObject(item, 'roaming'))].flatMap(
    (each) => arrayOrEmptyAt(each, 'dataSpeeds'),
  );
  return GENERATIONS.findLast((generation) => speeds.includes(generation)) ?? null;
}
