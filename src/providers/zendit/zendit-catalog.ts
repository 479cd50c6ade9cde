import type { Logger } from 'pino';
import type { PackageList, PackagePage, ProviderPackage } from '../live-provider.js';
import { arrayAt, countAt, ProviderResponseInvalid } from '../http/index.js';
import type { ZenditApi } from './zendit-api.js';
import { toPackages } from './zendit-offer.js';

/** Zendit allows 1,024; an offer of a hundred countries takes some 20 kB, and clients in use ask for 50 at a time. */
const PAGE_SIZE = 100;
/** No catalogue is that long; a provider whose pages never end must not hold us. */
const MAX_OFFERS = 100_000;
/** What one page may take of the time of the catalogue: a minute of five. */
const SHARE_OF_PAGE = 5;

/** The offers, page by page. One that cannot be read is left out and logged, and does not stop the others. */
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

  /** With the fields for which they were left out: `fee` says that prices are not what we thought. */
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
