import { setTimeout as sleep } from 'node:timers/promises';
import { troubleText } from '../explain.js';
import { ApiError, ConnectionError, type PartnerApi, type ServiceEvent } from '../partner-api.js';
import type { FeedPosition } from './cursor-file.js';

/** The longest that the service holds an empty page back. */
const WAIT_SECONDS = 25;
/** Between empty pages of a service that does not hold them back: half a token a second. */
const POLL_MS = 2_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 15_000;
const PAGE_LIMIT = 100;

export interface FeedPage {
  readonly events: readonly ServiceEvent[];
  /** Where the next page begins. */
  readonly next: string;
  readonly hasMore: boolean;
}

export interface FeedReaderOptions {
  readonly api: PartnerApi;
  readonly signal: AbortSignal;
  /** Told when the service is away, and when it is back. */
  readonly onTrouble: (reason: string, pauseMs: number) => void;
  readonly onRecovered: () => void;
}

/** Reads the event feed from a position on, forever; a lost connection, a sleep and a restart only make it late. */
export class FeedReader {
  constructor(private readonly options: FeedReaderOptions) {}

  /**
   * The page behind `position`; `waits` lets the service hold an empty one back.
   * @throws ApiError for what trying again cannot cure: a revoked key, a cursor that is not known
   */
  async page(position: FeedPosition, waits: boolean): Promise<FeedPage> {
    const page = await this.persist(() =>
      this.options.api.events(
        { after: position.event ?? position.page ?? undefined },
        PAGE_LIMIT,
        waits ? WAIT_SECONDS : 0,
      ),
    );
    if (waits && page.data.length === 0 && !page.waited) await this.pause(POLL_MS);
    return { events: page.data, next: page.nextCursor, hasMore: page.hasMore };
  }

  /** Tries again while it may help. */
  private async persist<T>(call: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      try {
        const answer = await call();
        if (failures > 0) this.options.onRecovered();
        return answer;
      } catch (error) {
        const pauseMs = pauseBefore(error, failures);
        if (pauseMs === null) throw error;
        if (!isRateLimit(error)) this.options.onTrouble(troubleText(error), pauseMs);
        await this.pause(pauseMs);
      }
    }
  }

  private pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.options.signal });
  }
}

const isRateLimit = (error: unknown): boolean => error instanceof ApiError && error.code === 'rate_limited';

/** Null for an error that stays. Full jitter, so that listeners do not come back together. */
function pauseBefore(error: unknown, failures: number): number | null {
  if (error instanceof ApiError && !error.retryable) return null;
  if (!(error instanceof ApiError) && !(error instanceof ConnectionError)) return null;
  return Math.random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
}
