import { setTimeout as sleep } from 'node:timers/promises';
import { troubleText } from './explain.js';
import { ApiError, ConnectionError, type LoggedCall, type PartnerApi } from './partner-api.js';

const POLL_MS = 2_000;
/** The processes of the service write their calls up to a second late, so rows can appear out of order. */
const OVERLAP_MS = 10_000;

export interface RequestsTailOptions {
  readonly api: PartnerApi;
  /** Filters that the API supports. */
  readonly filters: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly onCall: (call: LoggedCall) => void;
  /** Called when the service is unreachable. The tail continues. */
  readonly onTrouble: (reason: string) => void;
}

/** Follows the call log of the key's partner and mode. Reports each new call once, oldest first within a poll. */
export class RequestsTail {
  /** Ids of reported calls, with the time of each. */
  private readonly told = new Map<string, number>();

  constructor(private readonly options: RequestsTailOptions) {}

  /**
   * Runs until the signal aborts.
   * @throws ApiError when a retry cannot help
   */
  async run(): Promise<never> {
    const { api, onTrouble, signal } = this.options;
    await api.requests({ limit: 1 });
    const startedAtMs = api.firstAnsweredAtMs;
    for (let newestMs = startedAtMs; ;) {
      try {
        newestMs = await this.poll(Math.max(startedAtMs, newestMs - OVERLAP_MS), newestMs);
      } catch (error) {
        if (!mayPass(error)) throw error;
        onTrouble(troubleText(error));
      }
      await sleep(Math.max(POLL_MS, api.lastRetryAfterMs), undefined, { signal });
    }
  }

  /**
   * Reports new calls.
   * @returns the time of the newest call
   */
  private async poll(fromMs: number, newestMs: number): Promise<number> {
    const found = await this.callsFrom(fromMs);
    for (const [id, ms] of this.told) if (ms < fromMs) this.told.delete(id);
    let newest = newestMs;
    for (const call of found.toReversed()) {
      const ms = Date.parse(call.created_at);
      newest = Math.max(newest, ms);
      if (this.told.has(call.request_id)) continue;
      this.told.set(call.request_id, ms);
      this.options.onCall(call);
    }
    return newest;
  }

  /** All pages, newest first. */
  private async callsFrom(fromMs: number): Promise<LoggedCall[]> {
    const query = {
      ...this.options.filters,
      created_after: new Date(fromMs).toISOString(),
      limit: 100,
    };
    const calls: LoggedCall[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await this.options.api.requests({ ...query, cursor });
      calls.push(...page.data);
      if (page.nextCursor === null) return calls;
      cursor = page.nextCursor;
    }
  }
}

function mayPass(error: unknown): boolean {
  return error instanceof ApiError ? error.retryable : error instanceof ConnectionError;
}
