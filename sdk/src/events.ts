import { EsimApiError, EsimConnectionError } from './errors.js';
import { get, part } from './resources.js';
import { type CallOptions, pause, type Transport } from './transport.js';
import type { EsimEvent, EventFilters } from './types.js';

export interface EventPage {
  readonly data: readonly EsimEvent[];
  readonly hasMore: boolean;
  /** Never null. Pass it as `after` to continue, even if the page is empty. */
  readonly nextCursor: string;
  /** Whether the service honored the request to wait. */
  readonly waited: boolean;
}

export interface ListEventsOptions extends CallOptions {
  /** If there are no events, waits for up to this many seconds (maximum 25). */
  readonly waitSeconds?: number;
  readonly limit?: number;
}

export interface StreamOptions extends EventFilters {
  /** Seconds per long poll; default 25. */
  readonly waitSeconds?: number;
  /** The stream starts at the stored cursor, unless it is null or `after` is set, and saves each new cursor. */
  readonly cursorStore?: CursorStore;
  readonly signal?: AbortSignal;
}

/** Stores the position of a reader of the feed. */
export interface CursorStore {
  load(): Promise<string | null>;
  save(cursor: string): Promise<void>;
}

export interface ReconcileOptions {
  readonly cursorStore: CursorStore;
  /** Processes an event unless its id is known. Returns true if it was new. Your webhook handler fits. */
  readonly handle: (event: EsimEvent) => boolean | Promise<boolean>;
  readonly signal?: AbortSignal;
}

export interface Reconciled {
  readonly read: number;
  /** Ids of events that no webhook had delivered. */
  readonly missed: readonly string[];
}

const PAGE = 100;
const WAIT_SECONDS = 25;
/** Pause after a long poll to which the service responded at once. */
const PAUSE_MS = 2_000;
const PAUSE_AFTER_TROUBLE_MS = 5_000;

/** The events of the key's mode, oldest first, in an order that never changes. */
export class Events {
  constructor(private readonly transport: Transport) {}

  /**
   * Returns one page. `after` takes a cursor, or an event id within the retention period (90 days, Sandbox 30). A
   * cursor never expires. If it is older than the retention period, the dropped events are skipped without notice.
   */
  async list(filters: EventFilters = {}, options: ListEventsOptions = {}): Promise<EventPage> {
    const { waitSeconds, limit = PAGE, ...rest } = options;
    const { body, headers } = await this.transport.send({
      ...rest,
      method: 'GET',
      path: '/events',
      query: { ...filters, limit },
      ...(waitSeconds === undefined ? {} : { waitSeconds }),
    });
    return {
      data: body.data as EsimEvent[],
      hasMore: body.has_more ?? false,
      nextCursor: body.next_cursor!,
      waited: headers.get('preference-applied') !== null,
    };
  }

  get(id: string, options?: CallOptions): Promise<EsimEvent> {
    return get(this.transport, `/events/${part(id)}`, options);
  }

  /**
   * Yields every event after `after` and then new events as they arrive, without end. It uses long polling, which costs
   * about two calls per minute while nothing happens. With a `cursorStore`, a later call resumes where this one ended.
   * A cursor is saved once all events of its page have been consumed, so the last events may be repeated; recognize
   * them by their ids. Do not store an event id as the position, because the API rejects it once the event is past its
   * retention. While the service is unreachable, the stream retries. When `signal` aborts, the stream ends without an
   * error, whatever the abort reason.
   * @throws EsimApiError if retrying cannot help, and any error of `cursorStore`
   */
  async *stream(options: StreamOptions = {}): AsyncGenerator<EsimEvent, void, undefined> {
    const { signal } = options;
    try {
      for await (const event of this.#endless(options)) {
        // The page arrived before the signal aborted.
        if (signal?.aborted) return;
        yield event;
      }
    } catch (error) {
      if (!signal?.aborted || error !== signal.reason) throw error;
    }
  }

  /**
   * Reads from the stored cursor to the end of the feed and passes every event to `handle`. The cursor is saved after
   * each handled page. After a crash in between, the page is read again, and its ids are already known.
   */
  async reconcile({ cursorStore, handle, signal }: ReconcileOptions): Promise<Reconciled> {
    const missed: string[] = [];
    let read = 0;
    let cursor = await cursorStore.load();
    for (;;) {
      const page = await this.list(cursor === null ? {} : { after: cursor }, signal ? { signal } : {});
      for (const event of page.data) {
        read++;
        if (await handle(event)) missed.push(event.id);
      }
      cursor = page.nextCursor;
      await cursorStore.save(cursor);
      if (!page.hasMore) return { read, missed };
    }
  }

  /** @throws the reason of `signal` */
  async *#endless({
    waitSeconds = WAIT_SECONDS,
    cursorStore,
    signal,
    ...filters
  }: StreamOptions): AsyncGenerator<EsimEvent, never, undefined> {
    const options = { waitSeconds, ...(signal ? { signal } : {}) };
    let after = filters.after ?? (await cursorStore?.load());
    for (;;) {
      const page = await this.listUntilAnswered({ ...filters, ...(after ? { after } : {}) }, options);
      yield* page.data;
      if (page.nextCursor !== after) await cursorStore?.save(page.nextCursor);
      after = page.nextCursor;
      if (page.data.length === 0 && !page.waited) await pause(PAUSE_MS, signal);
    }
  }

  private async listUntilAnswered(filters: EventFilters, options: ListEventsOptions): Promise<EventPage> {
    for (;;) {
      try {
        return await this.list(filters, options);
      } catch (error) {
        const passes =
          error instanceof EsimConnectionError || (error instanceof EsimApiError && error.retryable);
        if (!passes) throw error;
        await pause(PAUSE_AFTER_TROUBLE_MS * (0.5 + Math.random()), options.signal);
      }
    }
  }
}
