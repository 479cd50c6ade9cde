import type { Logger } from 'pino';
import { type ProviderEsimRef, ProviderOutcomeUnknown } from '../esim-provider.js';
import type { ProviderUsageReport } from '../live-provider.js';
import { arrayAt, asObject, instantAt, ProviderResponseInvalid, textAt } from '../http/index.js';
import { type CallOptions, ESIM_ACCESS, type EsimAccessApi, retryShortWaits } from './esim-access-api.js';
import type { EsimSearch, IssueWindow } from './esim-search.js';
import { profileStatusOf, type QueriedEsim, statusOf, toQueriedEsim, usedBytesAt } from './queried-esim.js';
import { EsimAccessRefusal } from './refusal.js';

/**
 * Worst case, eSIMs issued far apart, is one call each: 100 calls are 13 s of the contract's 8 a second, which fits
 * into one deadline of 20 s.
 */
export const READ_BATCH_SIZE = 100;
/** What one `esim/usage/query` takes. */
const USAGE_BATCH_SIZE = 10;

/** A figure of `esim/usage/query`. */
interface UsageReading {
  readonly dataUsage: number;
  readonly lastUpdateTime: Date;
}

/**
 * Reads eSIMs. `esim/query` by time answers 500 a call, so a batch that was issued closely together costs one or two
 * calls instead of a hundred: 100,000 eSIMs are 1,000 batches of 100, about 1,500 calls, 190 s at the contract's 8 a
 * second, or six minutes when orders take half of it. One by one it would be three and a half hours. Ten eSIMs or
 * fewer also get the time at which their counters were read, from `esim/usage/query`.
 *
 * What cannot be read is settled one by one: neither an ill-formed eSIM nor one that the provider fails at takes the
 * others' readings with it.
 */
export class EsimReader {
  constructor(
    private readonly api: EsimAccessApi,
    private readonly search: EsimSearch,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /**
   * Leaves out what could not be read.
   * @throws ProviderUnavailable; ProviderOutcomeUnknown when nothing at all was answered, or the deadline passed
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
    // That is no bad eSIM any more: the provider is silent, and whoever polls has to leave it alone for a while.
    if (found.size === 0 && unanswered) throw unanswered;
    const usage =
      refs.length <= USAGE_BATCH_SIZE ? await this.readUsage([...found.keys()], options) : new Map();
    return [...found.values()].flatMap(
      ({ esim, readAt }) => this.toReading(esim, readAt, usage.get(esim.esimTranNo) as UsageReading) ?? [],
    );
  }

  /** Pages, as long as the pages left are fewer than the eSIMs left; those are asked for one by one. */
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

  /** The error as a note, for the others go on. @throws what is about all of them */
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
      // A refinement only: without it the counters are those of `esim/query`.
      this.warn(error);
      return new Map();
    }
  }

  /** Null for an eSIM of a form or status that the contract does not name: it must not stop the others. */
  private readable(value: unknown): QueriedEsim | null {
    try {
      return toQueriedEsim(value);
    } catch (error) {
      this.warn(error);
      return null;
    }
  }

  /** Empty for an entry without its figures, as of an eSIM that was never used: the others keep theirs. */
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
      totalBytes: esim.unlimited ? null : esim.totalVolume,
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

/** eSIMs that one window of time covers. */
interface IssueGroup {
  readonly refs: readonly ProviderEsimRef[];
  readonly window: IssueWindow;
}

/** A longer pause between two issues starts a new group. */
const LONGEST_PAUSE_MS = 3_600_000;
/** The provider made an eSIM before we issued it, by at most this much in ordinary times. */
const MADE_BEFORE_MS = 600_000;
const CLOCK_SKEW_MS = 120_000;

/** Splits by the pauses in time of issue. One that was made outside its group's window is asked for by itself. */
function groupByIssueTime(refs: readonly ProviderEsimRef[]): readonly IssueGroup[] {
  const ordered = [...refs].sort((a, b) => a.issuedAt.getTime() - b.issuedAt.getTime());
  const groups: ProviderEsimRef[][] = [];
  let lastMs = -Infinity;
  for (const ref of ordered) {
    const atMs = ref.issuedAt.getTime();
    if (atMs - lastMs > LONGEST_PAUSE_MS) groups.push([]);
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
