import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, EXIT } from '../exit-codes.js';
import { ApiError, type ServiceEvent } from '../partner-api.js';
import type { CursorFile, FeedPosition } from './cursor-file.js';
import type { FeedReader } from './feed-reader.js';
import type { DeliveryResult, LocalServer } from './local-delivery.js';

const FIRST_RETRY_MS = 1_000;
/** Someone is developing the server on this machine and should not wait longer than this after a fix. */
const MAX_RETRY_MS = 5_000;

export type OnFailure = 'retry' | 'skip' | 'stop';

export interface ListenerOptions {
  readonly feed: FeedReader;
  readonly server: LocalServer;
  readonly cursor: CursorFile;
  /** Event types to forward; null forwards all. */
  readonly types: ReadonlySet<string> | null;
  readonly onFailure: OnFailure;
  readonly signal: AbortSignal;
  /** @param retryMs null if the event is not retried */
  readonly onAttempt: (event: ServiceEvent, result: DeliveryResult, retryMs: number | null) => void;
}

/**
 * Forwards the feed to the local server, one event at a time, in the feed's order. The position advances only after a
 * 2xx, so no event is lost. An event arrives twice only if the program dies between the 2xx and the save.
 */
export class Listener {
  constructor(private readonly options: ListenerOptions) {}

  /**
   * Runs until the signal aborts.
   * @throws ApiError when a retry cannot help
   */
  async run(from: FeedPosition): Promise<void> {
    let position = from;
    while (!this.options.signal.aborted) {
      const page = await this.pageBehind(position);
      for (const event of page.events) {
        if (this.options.types?.has(event.type) ?? true) await this.forward(event);
        position = { page: position.page, event: event.id };
        this.options.cursor.write(position);
        // The next start forwards the rest of the page.
        if (this.options.signal.aborted) return;
      }
      if (position.page !== page.next) {
        position = { page: page.next, event: null };
        this.options.cursor.write(position);
      }
    }
  }

  /**
   * If the event is too old to be found by its id, starts its page again, because the page's cursor may still be valid.
   */
  private async pageBehind(position: FeedPosition): ReturnType<FeedReader['page']> {
    try {
      return await this.options.feed.page(position, true);
    } catch (error) {
      const lost = error instanceof ApiError && error.code === 'invalid_cursor' && position.event !== null;
      if (!lost) throw error;
      return this.options.feed.page({ page: position.page, event: null }, true);
    }
  }

  private async forward(event: ServiceEvent): Promise<void> {
    const { server, onFailure, onAttempt, signal } = this.options;
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      const result = await server.deliver(event);
      const again = !result.delivered && onFailure === 'retry';
      onAttempt(event, result, again ? retryMs : null);
      if (result.delivered || onFailure === 'skip') return;
      if (onFailure === 'stop')
        throw new CliError(EXIT.failed, `your server did not accept ${event.id}: ${result.outcome}`);
      await sleep(retryMs, undefined, { signal });
    }
  }
}
