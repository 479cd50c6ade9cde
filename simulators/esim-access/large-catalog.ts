import { pick } from '../pick.ts';
import type { SimPackage } from './catalog.ts';

/** Number of base packages that a live account listed in March 2026. */
const LISTED = 2_590;
const GB = 1_073_741_824;

/** [location code, countries]; `!GL` and `!RG` occur in place of a code. `IC` are the Canary Islands. */
const PLACES: readonly (readonly [string, string])[] = [
  ...'AE AU BR CA CH DE EG ES FR GB GE GR HK ID IN IT JP KR MX MY NZ PH PT SA SG TH TR TW US VN ZA'
    .split(' ')
    .map((country) => [country, country] as const),
  ['EU-30', 'AT,BE,BG,CY,CZ,DE,DK,EE,ES,FI,FR,GR,HR,HU,IE,IT,LT,LU,LV,MT,NL,PL,PT,RO,SE,SI,SK'],
  ['AS-7', 'HK,ID,KR,MY,SG,TH,VN'],
  ['SA-18', 'AR,BO,BR,CL,CO,CR,EC,GT,PE,UY'],
  ['NA-3', 'CA,MX,US'],
  ['!RG', 'ES,IC,PT'],
  ['!GL', 'AE,AU,BR,CA,DE,ES,FR,GB,JP,KR,SG,TH,TR,US,ZA'],
];

const GIGABYTES = [0.1, 0.5, 1, 2, 3, 5, 10, 20, 50];
const DATA_TYPES = [1, 1, 1, 2, 2, 3, 4] as const;
const TERMS: readonly (readonly [number, 'DAY' | 'MONTH'])[] = [
  [7, 'DAY'],
  [15, 'DAY'],
  [30, 'DAY'],
  [1, 'MONTH'],
  [90, 'DAY'],
];
const EXITS = ['HK', 'SG', 'NL/FR', 'JP', '', 'GB', 'PL', 'US', 'FR', 'NO', 'TR'];
const SPEEDS = ['3G/4G/5G', '4G/5G', '3G/4G', '4G', '', '5G', 'LTE'];
const REDUCED_SPEEDS = ['1 Mbps', '512 Kbps', '128kbps', '1.25 Mbps', '', 'See terms of use'];
const UNUSED_DAYS = [180, 180, 180, 365, 90];
const SALE_NOTES = ['Resellers must ensure a minimum retail price of USD 4.50.', 'Not for sale in Japan.'];

/**
 * Base packages of the recorded form, as many as a live account lists. They are the same in every run. How frequent each
 * combination is at the wholesaler is not known.
 */
export function largeCatalog(count = LISTED): SimPackage[] {
  return Array.from({ length: count }, (_, i) => toPackage(i));
}

function toPackage(i: number): SimPackage {
  const [locationCode, location] = pick(PLACES, i, 2);
  const dataType = pick(DATA_TYPES, i, 3);
  const isPass = dataType !== 1;
  const [duration, durationUnit] = isPass ? ([1, 'DAY'] as const) : pick(TERMS, i, 5);
  const gigabytes = pick(GIGABYTES, i, 7);
  const price = 1_000 + Math.ceil(gigabytes * 4_000) + i;
  const saleNote = i % 97 === 0 ? SALE_NOTES[(i / 97) % SALE_NOTES.length] : undefined;
  return {
    packageCode: `PL${String(i).padStart(5, '0')}`,
    slug: `${locationCode}_${gigabytes}_${isPass ? 'Daily' : duration}_${i}`,
    name: `${locationCode} ${gigabytes}GB${isPass ? '/Day' : ` ${duration}${durationUnit}`}, ${i}`,
    price,
    retailPrice: i % 13 === 0 ? 0 : price * 2,
    volume: Math.floor(gigabytes * GB),
    dataType,
    ...{ duration, durationUnit, location, locationCode },
    activeType: i % 3 === 0 ? 1 : 2,
    supportTopUpType: i % 5 === 0 ? 1 : isPass ? 3 : 2,
    kind: 'BASE',
    fupPolicy: dataType === 2 || dataType === 4 || i % 31 === 0 ? pick(REDUCED_SPEEDS, i, 11) : '',
    ipExport: pick(EXITS, i, 13),
    speed: pick(SPEEDS, i, 17),
    unusedValidTime: pick(UNUSED_DAYS, i, 19),
    smsStatus: i % 4 === 0 ? 1 : 0,
    ...(i % 29 === 0 ? { description: 'Hotspot may be limited by the operator.' } : {}),
    ...(i % 6 === 0 ? { operators: [] } : {}),
    ...(saleNote === undefined ? {} : { saleNote }),
  };
}
