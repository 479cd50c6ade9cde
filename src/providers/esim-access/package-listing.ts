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

type Kind = ProviderPackage['kind'];

/** What one list may take of the time of the catalogue: several megabytes, two minutes of five. */
const SHARE_OF_LIST = 2 / 5;

/** What eSIM Access sells, by `package/list`: base packages, and top-ups, which it tells apart and per package. */
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
   * The base packages, and the prices of top-ups. What all top-ups are is documented nowhere (a list that is not asked
   * for one package may be empty), so nothing but prices is taken from theirs.
   */
  lists(): readonly PackageList[] {
    return [this.listOf('base', 'everything'), this.listOf('topup', 'prices')];
  }

  /** The top-ups that eSIMs of one base package take. @throws ProviderResponseInvalid */
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

  /** @throws ProviderResponseInvalid when nothing of the list can be read */
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
    // Everything unreadable is a changed contract, not an empty shop.
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

/** 1 when the profile is installed, 2 at the first network. */
const ACTIVATION_POLICIES = { 1: 'on_install', 2: 'on_first_use' } as const;
const ON_FIRST_USE = 2;
const DAYS_OF_UNIT: Readonly<Record<string, number>> = { DAY: 1, WEEK: 7, MONTH: 30, YEAR: 365 };
const MICROS_PER_PRICE = 100;
const TOTAL_DATA = 1;
const SLOWER_AFTER_DAILY_DATA = 2;
const UNLIMITED_DATA = 4;
const NO_TOPUP = 1;
/** Reserved for the Canary Islands, and no country of ISO 3166-1. */
const CANARY_ISLANDS = 'IC';

/** Amounts of this wire are integers of 1/10,000 of the unit. @throws ProviderResponseInvalid when too large */
export function toMicros(price: number): number {
  const micros = price * MICROS_PER_PRICE;
  if (!Number.isSafeInteger(micros)) throw new ProviderResponseInvalid('price');
  return micros;
}

/**
 * One entry of `package/list`. Those of old lists have no `dataType`, `smsStatus`, `supportTopUpType`, `slug` or
 * `locationCode`: they mean a total amount of data, no top-up that is known of, and no name of the region.
 * Null for what our catalogue cannot say exactly. @throws ProviderResponseInvalid
 */
export function toPackage(sold: ResponseObject, kind: ProviderPackage['kind']): ProviderPackage | null {
  const coverage = coverageOf(sold);
  const validityDays = countAt(sold, 'duration') * (DAYS_OF_UNIT[textAt(sold, 'durationUnit')] ?? 0);
  const dataType = countOrNullAt(sold, 'dataType') ?? TOTAL_DATA;
  const volume = countAt(sold, 'volume');
  const activationPolicy = ACTIVATION_POLICIES[(countOrNullAt(sold, 'activeType') ?? ON_FIRST_USE) as 1 | 2];
  if (coverage.length === 0 || validityDays === 0 || activationPolicy === undefined) return null;
  // Types 2 and 3 allow the volume each day: only a plan of one day has a total.
  if (dataType !== TOTAL_DATA && dataType !== UNLIMITED_DATA && validityDays !== 1) return null;
  const currency = textAt(sold, 'currencyCode');
  // Orders name their price in USD: what is sold in another currency could be listed and never bought.
  if (currency !== 'USD') return null;
  const retail = countOrNullAt(sold, 'retailPrice');
  return {
    upstreamId: textAt(sold, 'packageCode'),
    kind,
    title: textAt(sold, 'name'),
    coverage,
    regionName: coverage.length > 1 ? regionNameOf(sold) : null,
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
  };
}

/** `1 Mbps`: what is left when the amount of a day is used up, or always. */
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

/** `EU-30`; `!GL` stands for the world, and `!RG` for some region or other, which its title names. */
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
