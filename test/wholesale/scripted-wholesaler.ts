import type { ProviderPackage, Wholesaler } from '../../src/providers/index.js';

/** A wholesaler inside the test that lists what it is told to, and does nothing else. */
export class ScriptedWholesaler {
  packages: ProviderPackage[] = [];
  /** What the next look at its list throws instead. */
  error: Error | null = null;

  constructor(readonly name: 'esim_access' | 'zendit') {}

  /** The same list again, with one package changed. */
  change(upstreamId: string, change: Partial<ProviderPackage>): void {
    this.packages = this.packages.map((each) =>
      each.upstreamId === upstreamId ? { ...each, ...change } : each,
    );
  }

  /** The same list again, without these. */
  drop(...upstreamIds: string[]): void {
    this.packages = this.packages.filter((each) => !upstreamIds.includes(each.upstreamId));
  }

  asWholesaler(): Wholesaler {
    const unused = (): never => {
      throw new Error('this wholesaler only lists packages');
    };
    return {
      name: this.name,
      timeoutMs: 2_000,
      readLagMs: 0,
      readBatchSize: 1,
      listPackages: () => (this.error ? Promise.reject(this.error) : Promise.resolve(this.packages)),
      placeOrder: unused,
      findOrder: unused,
      findParts: unused,
      cancelOrder: unused,
      findStandings: unused,
      placeTopup: unused,
      findTopup: unused,
      readEsims: unused,
      listPurchases: unused,
      getBalance: unused,
      hintsOf: () => [],
    };
  }
}

/** 1 GB for 7 days in France for 1.00 USD, unless told otherwise. */
export function offer(upstreamId: string, more: Partial<ProviderPackage> = {}): ProviderPackage {
  return {
    upstreamId,
    kind: 'base',
    title: `Package ${upstreamId}`,
    coverage: ['FR'],
    regionName: null,
    dataBytes: 1_000_000_000,
    unlimited: false,
    voiceMinutes: null,
    smsCount: null,
    validityDays: 7,
    activationPolicy: 'on_first_use',
    topupSupported: true,
    networks: [],
    cost: { micros: 1_000_000, currency: 'USD' },
    suggestedRetail: null,
    available: true,
    fitsUpstreamIds: null,
    ...more,
  };
}

/** So many offers, `<prefix>1` the first. */
export function offers(
  prefix: string,
  count: number,
  more: Partial<ProviderPackage> = {},
): ProviderPackage[] {
  return Array.from({ length: count }, (_, i) => offer(`${prefix}${i + 1}`, more));
}
