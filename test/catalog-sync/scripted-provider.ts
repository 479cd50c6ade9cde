import { UNSTATED_TERMS } from '../../src/catalog/index.js';
import type { LiveProviderName } from '../../src/config/index.js';
import type {
  EsimProvider,
  PackagePage,
  ProviderPackage,
  RepeatPolicy,
  LiveProvider,
} from '../../src/providers/index.js';

const OF_THE_TEST: RepeatPolicy = { repeat: 'same_request', source: 'the test' };

/** An in-memory provider that lists the given packages and does nothing else. */
export class ScriptedProvider {
  packages: ProviderPackage[] = [];
  /** If set, reading the list throws this. */
  error: Error | null = null;

  private heldBack: { readonly reach: () => void; readonly answer: Promise<void> } | null = null;

  constructor(readonly name: string) {}

  /** Makes the next read of the list wait for `release`. `reached` resolves when the read has begun. */
  holdNextList(): { readonly reached: Promise<void>; release(error?: Error): void } {
    const reached = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    this.heldBack = { reach: reached.resolve, answer: answer.promise };
    return {
      reached: reached.promise,
      release: (error) => (error ? answer.reject(error) : answer.resolve()),
    };
  }

  /** Changes one package of the list. */
  change(upstreamId: string, change: Partial<ProviderPackage>): void {
    this.packages = this.packages.map((each) =>
      each.upstreamId === upstreamId ? { ...each, ...change } : each,
    );
  }

  /** Removes packages from the list. */
  drop(...upstreamIds: string[]): void {
    this.packages = this.packages.filter((each) => !upstreamIds.includes(each.upstreamId));
  }

  asLiveProvider(): LiveProvider {
    const unused = (): never => {
      throw new Error('this wholesaler only lists packages');
    };
    return {
      name: this.name as LiveProviderName,
      timeoutMs: 2_000,
      readLagMs: 0,
      repeats: { order: OF_THE_TEST, topup: OF_THE_TEST, cancel: OF_THE_TEST },
      controlEsim: null,
      usageBatchSize: 1,
      catalogTimeoutMs: 300_000,
      soldList: { kinds: [], readPage: unused },
      listPackages: () => [
        { says: 'everything', kinds: ['base', 'topup'], pageTimeoutMs: 120_000, readPage: () => this.list() },
      ],
      listTopupsFor: null,
      placeOrder: unused,
      findOrder: unused,
      findParts: unused,
      cancelOrder: unused,
      findCancelStatuses: unused,
      placeTopup: unused,
      findTopup: unused,
      fetchUsage: unused,
      listPurchases: unused,
      getBalance: unused,
      hintsOf: () => [],
    };
  }

  /** The same provider without a package list. */
  asProvider(): EsimProvider {
    const provider: Partial<LiveProvider> = this.asLiveProvider();
    delete provider.listPackages;
    return provider as EsimProvider;
  }

  private async list(): Promise<PackagePage> {
    const held = this.heldBack;
    this.heldBack = null;
    held?.reach();
    await held?.answer;
    if (this.error) throw this.error;
    return { packages: this.packages, next: null };
  }
}

/** By default 1 GB for 7 days in France for 1.00 USD. */
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
    speedPolicy: null,
    notes: null,
    terms: UNSTATED_TERMS,
    ...more,
  };
}

/** `count` offers, starting with `<prefix>1`. */
export function offers(
  prefix: string,
  count: number,
  more: Partial<ProviderPackage> = {},
): ProviderPackage[] {
  return Array.from({ length: count }, (_, i) => offer(`${prefix}${i + 1}`, more));
}
