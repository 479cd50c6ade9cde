import type { Logger } from 'pino';
import { type ProviderEsimRef, ProviderOutcomeUnknown } from '../esim-provider.js';
import type { ProviderUsageReport } from '../live-provider.js';
import { arrayAt, asObject, instantAt, ProviderResponseInvalid, textAt } from '../http/index.js';
import { type CallOptions, ESIM_ACCESS, type EsimAccessApi, retryShortWaits } from './esim-access-api.js';
import type { EsimSearch, IssueWindow } from './esim-search.js';
import { profileStatusOf, type QueriedEsim, statusOf, toQueriedEsim, usedBytesAt } from './queried-esim.js';
import { EsimAccessRefusal } from './refusal.js';

/**
 * In the worst case, with eSIMs issued far apart, each needs its own call: 100 calls take 13 s at the contract's 8 per
 * second, which fits the deadline of 20 s.
 */
export const READ_BATCH_SIZE = 100;
/** Maximum batch of one `esim/usage/query`. */
const USAGE_BATCH_SIZE = 10;

/** One reading of `esim/usage/query`. */
interface UsageReading {
  readonly dataUsage: number;
  readonly lastUpdateTime: Date;
}

/**
 * Reads eSIMs in batches. `esim/query` by time returns 500 per call, so a batch that was issued closely together costs
 * one or two calls instead of a hundred. For 100,000 eSIMs that is 1,000 batches of 100, about 1,500 calls or 190 s at
 * the contract's 8 per second; six minutes when orders use half of the rate. One call per eSIM would take three and a
 * half hours. Batches of ten eSIMs or fewer also get the time of their counters from `esim/usage/query`.
 *
 * An eSIM that cannot be read in a batch is read on its own: neither a malformed eSIM nor a failing one costs the
 * others their readings.
 */
export class EsimReader {
  constructor(
    private readonly api: EsimAccessApi,
    private readonly search: EsimSearch,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /**
   * Omits eSIMs that could not be read.
   * @throws ProviderUnavailable; ProviderOutcomeUnknown if a call got no response and no eSIM was read, or time is up
   */
  async read(refs: readonly ProviderEsimRef[], signal: AbortSignal): Promise<readonly ProviderUsageReport[]> {
    const options: CallOptions = { purpose: 'poll', signal };
    const failures: Error[] = [];
    const settle = async (call: Promise<void>) =>
      call.catch((error: unknown) => failures.push(this.spoilsNoOther(error, options)));
    const wanted = new Set(refs.map((ref) => ref.providerEsimId));
    const found = new Map<string, { esim: QueriedEsim; readAt: Date }>();
    const keep = (esim: QueriedEsim) => {
      if (wanted.has(esim.esimTranNo)) found.set(esim.esimTranNo, { esim, readAt: new Date() });
    };
    const alone: ProviderEsimRef[] = [];
    for (const group of groupByIssueTime(refs)) {
      if (group.refs.length > 2) await settle(this.readGroup(group, keep, options));
      alone.push(...group.refs.filter((ref) => !found.has(ref.providerEsimId)));
    }
    for (const ref of alone) await settle(this.readOne(ref, keep, options));
    const unanswered = failures.find((error) => !isAboutContent(error));
    // No eSIM was read, so the fault is the provider's and not that of one eSIM: the poller must back off.
    if (found.size === 0 && unanswered) throw unanswered;
    const usage =
      refs.length <= USAGE_BATCH_SIZE ? await this.readUsage([...found.keys()], options) : new Map();
    return [...found.values()].flatMap(
      ({ esim, readAt }) => this.toReading(esim, readAt, usage.get(esim.esimTranNo) as UsageReading) ?? [],
    );
  }

  /** Reads pages while fewer pages than missing eSIMs remain; the caller reads the remaining eSIMs one by one. */
  private async readGroup(
    group: IssueGroup,
    keep: (esim: QueriedEsim) => void,
    options: CallOptions,
  ): Promise<void> {
    const missing = new Set(group.refs.map((ref) => ref.providerEsimId));
    for (let pageNum = 1; ; pageNum++) {
      const { esims, pages } = await retryShortWaits(
        () => this.search.page(group.window, pageNum, options),
        options,
      );
      for (const value of esims) {
        const esim = this.readable(value);
        if (esim && missing.delete(esim.esimTranNo)) keep(esim);
      }
      if (missing.size === 0 || pages - pageNum <= 0 || pages - pageNum >= missing.size) return;
    }
  }

  private async readOne(
    ref: ProviderEsimRef,
    keep: (esim: QueriedEsim) => void,
    options: CallOptions,
  ): Promise<void> {
    const esim = await retryShortWaits(() => this.search.byTranNo(ref.providerEsimId, options), options);
    if (esim) keep(esim);
  }

  /**
   * Returns an error that concerns one eSIM, so that the others continue. @throws an error that concerns all of them
   */
  private spoilsNoOther(error: unknown, { signal }: CallOptions): Error {
    const isOfOne = error instanceof ProviderOutcomeUnknown || error instanceof EsimAccessRefusal;
    if (!isOfOne || signal.aborted) throw error;
    this.warn(error);
    return error;
  }

  private async readUsage(
    esimTranNoList: readonly string[],
    options: CallOptions,
  ): Promise<ReadonlyMap<string, UsageReading>> {
    if (esimTranNoList.length === 0) return new Map();
    try {
      const answer = await retryShortWaits(
        () => this.api.call('esim/usage/query', { esimTranNoList }, options),
        options,
      );
      return new Map(arrayAt(answer, 'esimUsageList').flatMap((value) => this.usageOf(value)));
    } catch (error) {
      // Optional detail. Without it, the counters from `esim/query` apply.
      this.warn(error);
      return new Map();
    }
  }

  /** Null for an eSIM whose form or status the contract does not name. The other eSIMs are still read. */
  private readable(value: unknown): QueriedEsim | null {
    try {
      return toQueriedEsim(value);
    } catch (error) {
      this.warn(error);
      return null;
    }
  }

  /** Empty for an entry without counters, such as an unused eSIM. The other entries of the batch are still read. */
  private usageOf(value: unknown): [string, UsageReading][] {
    try {
      return [toUsage(value)];
    } catch (error) {
      this.warn(error);
      return [];
    }
  }

  private toReading(
    esim: QueriedEsim,
    readAt: Date,
    usage: UsageReading | undefined,
  ): ProviderUsageReport | null {
    const status = statusOf(esim);
    if (status === null) {
      this.warn(new ProviderResponseInvalid('esimStatus'));
      return null;
    }
    const isUsageNewer = usage !== undefined && usage.dataUsage >= (esim.orderUsage ?? 0);
    return {
      providerEsimId: esim.esimTranNo,
      status,
      profileStatus: profileStatusOf(esim),
      usedBytes: isUsageNewer ? usage.dataUsage : esim.orderUsage,
      totalBytes: esim.totalVolume,
      goesOn: esim.goesOn,
      plans: null,
      activatedAt: esim.activatedAt,
      expiresAt: esim.expiresAt,
      asOf: isUsageNewer ? usage.lastUpdateTime : readAt,
    };
  }

  private warn(error: unknown): void {
    const reason =
      error instanceof ProviderResponseInvalid ? error.path : error instanceof Error ? error.name : '';
    this.logger.warn({ event: 'provider.reading_skipped', provider: ESIM_ACCESS, reason });
  }
}

function isAboutContent(error: Error): boolean {
  return error instanceof ProviderResponseInvalid || error instanceof EsimAccessRefusal;
}

function toUsage(value: unknown): [string, UsageReading] {
  const usage = asObject(value, 'esimUsageList');
  const dataUsage = usedBytesAt(usage, 'dataUsage');
  if (dataUsage === null) throw new ProviderResponseInvalid('dataUsage');
  return [textAt(usage, 'esimTranNo'), { dataUsage, lastUpdateTime: instantAt(usage, 'lastUpdateTime') }];
}

/** eSIMs that one time window covers. */
interface IssueGroup {
  readonly refs: readonly ProviderEsimRef[];
  readonly window: IssueWindow;
}

/** A longer gap between two issue times starts a new group. */
const MAX_PAUSE_MS = 3_600_000;
/** Usual maximum time between the provider's creation of an eSIM and our issuing it. */
const MADE_BEFORE_MS = 600_000;
const CLOCK_SKEW_MS = 120_000;

/** Splits by gaps between issue times. An eSIM created outside its group's window is read on its own. */
function groupByIssueTime(refs: readonly ProviderEsimRef[]): readonly IssueGroup[] {
  const ordered = [...refs].sort((a, b) => a.issuedAt.getTime() - b.issuedAt.getTime());
  const groups: ProviderEsimRef[][] = [];
  let lastMs = -Infinity;
  for (const ref of ordered) {
    const atMs = ref.issuedAt.getTime();
    if (atMs - lastMs > MAX_PAUSE_MS) groups.push([]);
    groups.at(-1)!.push(ref);
    lastMs = atMs;
  }
  return groups.map((group) => ({
    refs: group,
    window: {
      fromMs: group[0]!.issuedAt.getTime() - MADE_BEFORE_MS,
      toMs: group.at(-1)!.issuedAt.getTime() + CLOCK_SKEW_MS,
    },
  }));
}
