import { setTimeout as sleep } from 'node:timers/promises';
import { troubleText } from '../explain.js';
import { ApiError, ConnectionError, type PartnerApi, type ServiceEvent } from '../partner-api.js';
import type { FeedPosition } from './cursor-file.js';

/** Maximum time for which the service delays an empty page. */
const WAIT_SECONDS = 25;
/** Pause between empty pages if the service does not delay them. It costs half a token per second. */
const POLL_MS = 2_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 15_000;
const PAGE_LIMIT = 100;

export interface FeedPage {
  readonly events: readonly ServiceEvent[];
  /** Cursor of the next page. */
  readonly next: string;
  readonly hasMore: boolean;
}

export interface FeedReaderOptions {
  readonly api: PartnerApi;
  readonly signal: AbortSignal;
  /** Called when the service becomes unreachable. */
  readonly onTrouble: (reason: string, pauseMs: number) => void;
  readonly onRecovered: () => void;
}

/** Reads the event feed from a position on. A lost connection, sleep or a restart only delays it. */
export class FeedReader {
  constructor(private readonly options: FeedReaderOptions) {}

  /**
   * Reads the page after `position`.
   * @param waits lets the service delay an empty page until an event arrives
   * @throws ApiError when a retry cannot help: a revoked key or an unknown cursor
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

  /** Retries until the call succeeds or a retry cannot help. */
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

/** @returns null for a permanent error. Uses full jitter, so that listeners do not retry in step. */
function pauseBefore(error: unknown, failures: number): number | null {
  if (error instanceof ApiError && !error.retryable) return null;
  if (!(error instanceof ApiError) && !(error instanceof ConnectionError)) return null;
  return Math.random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
}
