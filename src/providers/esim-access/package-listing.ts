import type { Logger } from 'pino';
import type { PackageList, ProviderPackage } from '../esim-provider.js';
import { arrayAt, asObject, ProviderResponseInvalid } from '../http/index.js';
import { ESIM_ACCESS, type EsimAccessApi } from './esim-access-api.js';
import { toPackage } from './listed-package.js';

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
