import type { Logger } from 'pino';
import type { ProviderPackage } from '../esim-provider.js';
import {
  type AnswerObject,
  arrayAt,
  arrayOrEmptyAt,
  asObject,
  countAt,
  countOrNullAt,
  textAt,
  textOrNullAt,
  UpstreamAnswerInvalid,
} from '../upstream/index.js';
import { ESIM_ACCESS, type EsimAccessApi } from './esim-access-api.js';

/** 1 when the profile is installed, 2 at the first network. */
const ACTIVATION_POLICIES = { 1: 'on_install', 2: 'on_first_use' } as const;
const DAYS_OF_UNIT: Readonly<Record<string, number>> = { DAY: 1, WEEK: 7, MONTH: 30, YEAR: 365 };
const MICROS_PER_PRICE = 100;
const TOTAL_DATA = 1;
const UNLIMITED_DATA = 4;
const NO_TOPUP = 1;

/** Lists what eSIM Access sells: `package/list` for base packages, then for top-ups. */
export class PackageListing {
  constructor(
    private readonly api: EsimAccessApi,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /** @throws UpstreamAnswerInvalid when nothing of the list can be read. */
  async list(signal: AbortSignal): Promise<readonly ProviderPackage[]> {
    return [...(await this.listOf('base', signal)), ...(await this.listOf('topup', signal))];
  }

  private async listOf(
    kind: ProviderPackage['kind'],
    signal: AbortSignal,
  ): Promise<readonly ProviderPackage[]> {
    const fields = { type: kind === 'base' ? 'BASE' : 'TOPUP' };
    const answer = await this.api.call('package/list', fields, { purpose: 'catalog', signal });
    const list = arrayAt(answer, 'packageList');
    const packages = new Map<string, ProviderPackage>();
    for (const value of list) {
      const read = this.readable(value, kind);
      if (read) packages.set(read.upstreamId, read);
    }
    // Everything unreadable is a changed contract, not an empty shop.
    if (list.length > 0 && packages.size === 0) throw new UpstreamAnswerInvalid('packageList');
    const skipped = list.length - packages.size;
    if (skipped > 0)
      this.logger.warn({ event: 'upstream.packages_skipped', provider: ESIM_ACCESS, kind, skipped });
    return [...packages.values()];
  }

  private readable(value: unknown, kind: ProviderPackage['kind']): ProviderPackage | null {
    try {
      return toPackage(asObject(value, 'package'), kind);
    } catch (error) {
      if (error instanceof UpstreamAnswerInvalid) return null;
      throw error;
    }
  }
}

/** Amounts of this wire are integers of 1/10,000 of the unit. @throws UpstreamAnswerInvalid when too large */
export function toMicros(price: number): number {
  const micros = price * MICROS_PER_PRICE;
  if (!Number.isSafeInteger(micros)) throw new UpstreamAnswerInvalid('price');
  return micros;
}

/** Null for what our catalogue cannot say exactly. @throws UpstreamAnswerInvalid */
function toPackage(sold: AnswerObject, kind: ProviderPackage['kind']): ProviderPackage | null {
  const coverage = coverageOf(sold);
  const validityDays = countAt(sold, 'duration') * (DAYS_OF_UNIT[textAt(sold, 'durationUnit')] ?? 0);
  const dataType = countAt(sold, 'dataType');
  const volume = countAt(sold, 'volume');
  const activationPolicy = ACTIVATION_POLICIES[countAt(sold, 'activeType') as 1 | 2];
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
    regionName: coverage.length > 1 ? textOrNullAt(sold, 'locationCode') : null,
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
    fitsUpstreamIds: null,
  };
}

function coverageOf(sold: AnswerObject): readonly string[] {
  const codes = textAt(sold, 'location')
    .split(',')
    .map((code) => code.trim().toUpperCase());
  return [...new Set(codes.filter((code) => /^[A-Z]{2}$/.test(code)))].sort();
}

function networksOf(sold: AnswerObject): ProviderPackage['networks'] {
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
