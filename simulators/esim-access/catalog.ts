export interface SimPackage {
  readonly packageCode: string;
  readonly slug: string;
  readonly name: string;
  /** 1/10,000 USD. */
  price: number;
  readonly retailPrice: number;
  readonly volume: number;
  /** 1 total, 2 daily then slower, 3 daily then stopped, 4 daily unlimited. */
  readonly dataType: 1 | 2 | 3 | 4;
  readonly duration: number;
  readonly durationUnit: 'DAY' | 'MONTH';
  readonly location: string;
  readonly locationCode: string;
  /** Activation: 1 at installation, 2 at the first network connection. */
  readonly activeType: 1 | 2;
  readonly supportTopUpType: 1 | 2 | 3;
  readonly kind: 'BASE' | 'TOPUP';
  /** The speed after the data of a day: `1 Mbps` in a recorded query, `512 Kbps` in clients, "" for packages without. */
  readonly fupPolicy?: string;
  /** Exit country: `HK` in recorded lists, several as in `NL/FR`, "" where the wholesaler does not say. */
  readonly ipExport?: string;
  /** `3G/4G/5G` in recorded lists. */
  readonly speed?: string;
  /** Days in which the eSIM must be installed: 180 in all recorded lists. */
  readonly unusedValidTime?: number;
  /** 0 no SMS, 1 by API and network, 2 by API only (the documented table). */
  readonly smsStatus?: 0 | 1 | 2;
  /** Conditions for resellers, such as a minimum retail price. Seen in one client's code only. */
  readonly saleNote?: string;
  /** Most descriptions repeat the name. */
  readonly description?: string;
  /** Operators per country; empty in some recorded entries. */
  readonly operators?: readonly string[];
}

/** Data types with a reduced speed; 1 (total) and 3 (daily, then stopped) have none. */
const SLOWED_DATA_TYPES = [2, 4];

/** The reduced speed, in lists and queries. */
export function fupPolicyOf({ fupPolicy, dataType }: Pick<SimPackage, 'fupPolicy' | 'dataType'>): string {
  return fupPolicy ?? (SLOWED_DATA_TYPES.includes(dataType) ? '1 Mbps' : '');
}

export const EXIT_COUNTRY = 'HK';
export const UNUSED_DAYS = 180;

/** Behavior of `package/list`. */
export interface CatalogHabits {
  /** Response to a top-up list without a package or eSIM: all, none (both occur), or a refusal. */
  unfilteredTopups: 'all' | 'empty' | 'refused';
  /** Entries in the format of 2023: without dataType, slug, smsStatus, supportTopUpType and locationCode. */
  oldForm: 'none' | 'topups' | 'all';
  /** Number of unreadable entries at the end of each list. */
  unreadable: number;
}

export function defaultHabits(): CatalogHabits {
  return { unfilteredTopups: 'all', oldForm: 'none', unreadable: 0 };
}

const GB = 1_073_741_824;

/** [location code, countries, name, price of 1 GB in 1/10,000 USD] */
const PLACES: readonly (readonly [string, string, string, number])[] = [
  ['DE', 'DE', 'Germany', 6_000],
  ['US', 'US', 'United States', 9_000],
  ['JP', 'JP', 'Japan', 8_000],
  ['TR', 'TR', 'Turkey', 7_000],
  ['TH', 'TH', 'Thailand', 5_000],
  ['GB', 'GB', 'United Kingdom', 6_500],
  ['AE', 'AE', 'United Arab Emirates', 15_000],
  [
    'EU-30',
    'AT,BE,BG,CY,CZ,DE,DK,EE,ES,FI,FR,GR,HR,HU,IE,IT,LT,LU,LV,MT,NL,PL,PT,RO,SE,SI,SK',
    'Europe',
    11_000,
  ],
  ['AS-12', 'CN,HK,ID,JP,KR,MO,MY,PH,SG,TH,TW,VN', 'Asia', 12_000],
];

/** [suffix, bytes, days, share of the price of 1 GB in tenths] */
const SIZES: readonly (readonly [string, number, number, number])[] = [
  ['1_7', GB, 7, 10],
  ['3_30', 3 * GB, 30, 26],
  ['10_30', 10 * GB, 30, 75],
];

/** About thirty base packages and their top-ups, among them day passes, an unlimited one, and two unusual ones. */
export function defaultCatalog(): SimPackage[] {
  const base = PLACES.flatMap((place) => SIZES.map((size) => basePackage(place, size)));
  const odd: SimPackage[] = [
    {
      ...base[0]!,
      packageCode: 'DE_UNL_1',
      slug: 'DE_UNL_1',
      name: 'Germany unlimited',
      dataType: 4,
      duration: 1,
      price: 25_000,
    },
    {
      ...base[3]!,
      packageCode: 'US_MB_1',
      slug: 'US_0.5_1M',
      name: 'United States 500MB',
      volume: 524_288_000,
      duration: 1,
      durationUnit: 'MONTH',
      price: 12_000,
      activeType: 2,
    },
    {
      ...base[6]!,
      packageCode: 'JP_DAILY',
      slug: 'JP_1_Daily',
      name: 'Japan 1GB/Day',
      dataType: 2,
      duration: 1,
      supportTopUpType: 3,
    },
    {
      ...base[6]!,
      packageCode: 'JP_DAILY_STOP',
      slug: 'JP_1_Daily_Stop',
      name: 'Japan 1GB/Day, then stopped',
      dataType: 3,
      duration: 1,
      supportTopUpType: 3,
    },
    {
      ...base[9]!,
      packageCode: 'TR_NO_TOPUP',
      slug: 'TR_2_15',
      name: 'Turkey 2GB',
      volume: 2 * GB,
      duration: 15,
      supportTopUpType: 1,
    },
  ];
  const passes = odd.filter(({ supportTopUpType }) => supportTopUpType === 3);
  return [...base, ...odd, ...[...base, ...passes].map(topupOf)];
}

function basePackage(
  [locationCode, location, name, unitPrice]: (typeof PLACES)[number],
  [suffix, volume, duration, share]: (typeof SIZES)[number],
): SimPackage {
  const price = (unitPrice * share) / 10;
  return {
    packageCode: `P${locationCode.replace('-', '')}${suffix.replace('_', 'D')}`,
    slug: `${locationCode}_${suffix}`,
    name: `${name} ${volume / GB}GB ${duration}Days`,
    price,
    retailPrice: price * 2,
    volume,
    dataType: 1,
    duration,
    durationUnit: 'DAY',
    location,
    locationCode,
    activeType: 1,
    supportTopUpType: 2,
    kind: 'BASE',
  };
}

function topupOf(base: SimPackage): SimPackage {
  return { ...base, packageCode: `TOPUP_${base.packageCode}`, kind: 'TOPUP' };
}

const NEW_FIELDS = new Set(['dataType', 'slug', 'smsStatus', 'supportTopUpType', 'locationCode']);

/** The entry in the format of 2023. */
export function inOldForm(entry: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(entry).filter(([field]) => !NEW_FIELDS.has(field)));
}

/** The entry in the format of `package/list`. */
export function packageOnWire({ kind: _kind, operators, ...sold }: SimPackage): Record<string, unknown> {
  return {
    currencyCode: 'USD',
    smsStatus: 1,
    unusedValidTime: UNUSED_DAYS,
    description: sold.name,
    favorite: false,
    speed: '3G/4G/5G',
    ipExport: EXIT_COUNTRY,
    ...sold,
    fupPolicy: fupPolicyOf(sold),
    locationNetworkList: sold.location.split(',').map((code) => ({
      locationName: code,
      locationLogo: `/img/flags/${code.toLowerCase()}.png`,
      locationCode: code,
      operatorList: (operators ?? [`Mobile ${code}`]).map((operatorName) => ({
        operatorName,
        networkType: '5G',
      })),
    })),
  };
}
