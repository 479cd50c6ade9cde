import type { Logger } from 'pino';
import type { ProviderPackage } from '../esim-provider.js';
import { arrayAt, countAt, UpstreamAnswerInvalid } from '../upstream/index.js';
import type { ZenditApi } from './zendit-api.js';
import { toPackages } from './zendit-offer.js';

/** An offer of a hundred countries takes some 20 kB, and an answer may have 8 MB; Zendit allows 1,024. */
const PAGE_SIZE = 250;
/** No catalogue is that long; an upstream whose pages never end must not hold us. */
const MAX_PAGES = 400;

/** Every offer of every page. One that cannot be read is left out and logged, and does not stop the others. */
export class ZenditCatalog {
  constructor(
    private readonly api: ZenditApi,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /** @throws ProviderUnavailable, ProviderOutcomeUnknown */
  async list(signal: AbortSignal): Promise<readonly ProviderPackage[]> {
    // An offer that moves to the next page while we read would come twice.
    const packages = new Map<string, ProviderPackage>();
    let skipped = 0;
    for (let page = 0, offset = 0; page < MAX_PAGES; page++) {
      const answer = await this.api.getOffers(PAGE_SIZE, offset, signal);
      const list = arrayAt(answer, 'list');
      for (const offer of list) if (!keep(packages, offer)) skipped += 1;
      offset += list.length;
      if (list.length === 0 || offset >= countAt(answer, 'total')) {
        if (skipped > 0) this.logger.warn({ event: 'upstream.offers_skipped', provider: 'zendit', skipped });
        return [...packages.values()];
      }
    }
    throw new UpstreamAnswerInvalid('total');
  }
}

/** @returns false for an offer that cannot be read */
function keep(packages: Map<string, ProviderPackage>, offer: unknown): boolean {
  try {
    for (const item of toPackages(offer)) packages.set(`${item.kind} ${item.upstreamId}`, item);
    return true;
  } catch (error) {
    if (error instanceof UpstreamAnswerInvalid) return false;
    throw error;
  }
}
