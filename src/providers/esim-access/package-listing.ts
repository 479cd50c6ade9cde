import type { Logger } from 'pino';
import type { PackageList, ProviderPackage } from '../live-provider.js';
import {
  arrayAt,
  arrayOrEmptyAt,
  asObject,
  countAt,
  countOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  textOrNullAt,
} from '../http/index.js';
import { ESIM_ACCESS, type EsimAccessApi } from './esim-access-api.js';
import {
  daysOf,
  NO_TOPUP,
  SLOWER_AFTER_DAILY_DATA,
  termsOf,
  TOTAL_DATA,
  UNLIMITED_DATA,
} from './package-terms.js';

type Kind = ProviderPackage['kind'];

/** Share of the catalog timeout for one list, which has several megabytes: two minutes of five. */
const SHARE_OF_LIST = 2 / 5;

/**
 * Reads what eSIM Access sells from `package/list`: base packages, and top-ups, which are listed separately and per
 * package.
 */
export class PackageListing {
  private readonly listTimeoutMs: number;

  constructor(
    private readonly api: EsimAccessApi,
    private readonly logger: Pick<Logger, 'warn'>,
    catalogTimeoutMs: number,
  ) {
    this.listTimeoutMs = Math.ceil(catalogTimeoutMs * SHARE_OF_LIST);
  }

  /**
   * The base packages, and the prices of top-ups. No source documents that the list without a package contains all
   * top-ups (it may be empty), so only prices are taken from it.
   */
  lists(): readonly PackageList[] {
    return [this.listOf('base', 'everything'), this.listOf('topup', 'prices')];
  }

  /** The top-ups for eSIMs of one base package. @throws ProviderResponseInvalid */
  topupsFor(packageCode: string, signal: AbortSignal): Promise<readonly ProviderPackage[]> {
    return this.read('topup', { packageCode }, signal);
  }

  private listOf(kind: Kind, says: PackageList['says']): PackageList {
    return {
      says,
      kinds: [kind],
      pageTimeoutMs: this.listTimeoutMs,
      readPage: async (_from, signal) => ({
        packages: await this.read(kind, {}, signal, this.listTimeoutMs),
        next: null,
      }),
    };
  }

  /** @throws ProviderResponseInvalid when no entry can be parsed */
  private async read(
    kind: Kind,
    filter: object,
    signal: AbortSignal,
    timeoutMs?: number,
  ): Promise<readonly ProviderPackage[]> {
    const fields = { type: kind === 'base' ? 'BASE' : 'TOPUP', ...filter };
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const answer = await this.api.call('package/list', fields, { purpose: 'catalog', signal, ...limit });
    const list = arrayAt(answer, 'packageList');
    const packages = new Map<string, ProviderPackage>();
    for (const value of list) {
      const read = readable(value, kind);
      if (read) packages.set(read.upstreamId, read);
    }
    // A list of unreadable entries means a changed contract, not an empty shop.
    if (list.length > 0 && packages.size === 0) throw new ProviderResponseInvalid('packageList');
    const skipped = list.length - packages.size;
    if (skipped > 0)
      this.logger.warn({ event: 'provider.packages_skipped', provider: ESIM_ACCESS, kind, skipped });
    return [...packages.values()];
  }
}

function readable(value: unknown, kind: Kind): ProviderPackage | null {
  try {
    return toPackage(asObject(value, 'package'), kind);
  } catch (error) {
    if (error instanceof ProviderResponseInvalid) return null;
    throw error;
  }
}

/** 1 activates at installation, 2 at the first network connection. */
const ACTIVATION_POLICIES = { 1: 'on_install', 2: 'on_first_use' } as const;
const ON_FIRST_USE = 2;
const MICROS_PER_PRICE = 100;
/** Reserved for the Canary Islands; not a country of ISO 3166-1. */
const CANARY_ISLANDS = 'IC';

/** Wire amounts are integers of 1/10,000 of the unit. @throws ProviderResponseInvalid when too large */
export function toMicros(price: number): number {
  const micros = price * MICROS_PER_PRICE;
  if (!Number.isSafeInteger(micros)) throw new ProviderResponseInvalid('price');
  return micros;
}

/**
 * One entry of `package/list`. Entries of old lists lack `dataType`, `smsStatus`, `supportTopUpType`, `slug` or
 * `locationCode`: that means a total amount of data, no known top-up, and no region name. Null for entries that our
 * catalog cannot describe exactly. @throws ProviderResponseInvalid
 */
export function toPackage(sold: ResponseObject, kind: ProviderPackage['kind']): ProviderPackage | null {
  const coverage = coverageOf(sold);
  const validityDays = daysOf(sold, 'duration');
  const dataType = countOrNullAt(sold, 'dataType') ?? TOTAL_DATA;
  const volume = countAt(sold, 'volume');
  const activationPolicy = ACTIVATION_POLICIES[(countOrNullAt(sold, 'activeType') ?? ON_FIRST_USE) as 1 | 2];
  if (coverage.length === 0 || !validityDays || activationPolicy === undefined) return null;
  // Types 2 and 3 allow the volume per day. No source says what a plan of several days allows or costs.
  if (dataType !== TOTAL_DATA && dataType !== UNLIMITED_DATA && validityDays !== 1) return null;
  const currency = textAt(sold, 'currencyCode');
  // Orders name their price in USD: a package in another currency could be listed but never bought.
  if (currency !== 'USD') return null;
  const retail = countOrNullAt(sold, 'retailPrice');
  const regionName = coverage.length > 1 ? regionNameOf(sold) : null;
  return {
    upstreamId: textAt(sold, 'packageCode'),
    kind,
    title: textAt(sold, 'name'),
    coverage,
    regionName,
    dataBytes: dataType === UNLIMITED_DATA ? null : volume,
    unlimited: dataType === UNLIMITED_DATA,
    voiceMinutes: null,
    smsCount: null,
    validityDays,
    activationPolicy,
    topupSupported: (countOrNullAt(sold, 'supportTopUpType') ?? NO_TOPUP) !== NO_TOPUP,
    networks: networksOf(sold),
    cost: { micros: toMicros(countAt(sold, 'price')), currency },
    suggestedRetail: retail ? { micros: toMicros(retail), currency } : null,
    available: true,
    speedPolicy: speedPolicyOf(sold, dataType),
    notes: notesOf(sold),
    terms: termsOf(sold, { regionName, validityDays }),
  };
}

/** For example `1 Mbps`: the speed after the daily amount is used up, or always. */
function speedPolicyOf(sold: ResponseObject, dataType: number): string | null {
  const said = textOrNullAt(sold, 'fupPolicy');
  if (said === null && dataType === SLOWER_AFTER_DAILY_DATA) return 'Slower after the data of the day';
  return said;
}

/** Most descriptions only repeat the name. */
function notesOf(sold: ResponseObject): string | null {
  const description = textOrNullAt(sold, 'description');
  return description === textAt(sold, 'name') ? null : description;
}

/** For example `EU-30`. `!GL` stands for the world, and `!RG` for a region that only the title names. */
function regionNameOf(sold: ResponseObject): string | null {
  const code = textOrNullAt(sold, 'locationCode');
  if (code === '!GL') return 'Global';
  return code === '!RG' ? null : code;
}

function coverageOf(sold: ResponseObject): readonly string[] {
  const codes = textAt(sold, 'location')
    .split(',')
    .map((code) => code.trim().toUpperCase());
  return [...new Set(codes.filter((code) => /^[A-Z]{2}$/.test(code) && code !== CANARY_ISLANDS))].sort();
}

function networksOf(sold: ResponseObject): ProviderPackage['networks'] {
  return arrayOrEmptyAt(sold, 'locationNetworkList').flatMap((value) => {
    const location = asObject(value, 'locationNetworkList');
    const country = textOrNullAt(location, 'locationCode')?.toUpperCase() ?? '';
    if (!/^[A-Z]{2}$/.test(country)) return [];
    return arrayOrEmptyAt(location, 'operatorList').flatMap((each) => {
      const network = asObject(each, 'operatorList');
      const operator = textOrNullAt(network, 'operatorName');
      const generations = (textOrNullAt(network, 'networkType') ?? '').split(/[/,\s]+/).filter(Boolean);
      return operator === null ? [] : [{ country, operator, generations }];
    });
  });
}
