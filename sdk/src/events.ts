import { EsimApiError, EsimConnectionError } from './errors.js';
import { get, part } from './resources.js';
import { type CallOptions, pause, type Transport } from './transport.js';
import type { EsimEvent, EventFilters } from './types.js';

export interface EventPage {
  readonly data: readonly EsimEvent[];
  readonly hasMore: boolean;
  /** Never null: read on with it as `after`, also when the page is empty. */
  readonly nextCursor: string;
  /** The service was willing to wait. */
  readonly waited: boolean;
}

export interface ListEventsOptions extends CallOptions {
  /** When nothing is there, wait for it: so many seconds, 25 at most. */
  readonly waitSeconds?: number;
  readonly limit?: number;
}

export interface StreamOptions extends EventFilters {
  /** Seconds of each long read; default 25. */
  readonly waitSeconds?: number;
  /** Begins at its cursor, unless that is null or `after` is given, and stores each one that it comes to. */
  readonly cursorStore?: CursorStore;
  readonly signal?: AbortSignal;
}

/** Where a reader of the feed has come to. */
export interface CursorStore {
  load(): Promise<string | null>;
  save(cursor: string): Promise<void>;
}

export interface ReconcileOptions {
  readonly cursorStore: CursorStore;
  /** Takes an event unless its id is known; returns true when it was new. The handler of webhooks will do. */
  readonly handle: (event: EsimEvent) => boolean | Promise<boolean>;
  readonly signal?: AbortSignal;
}

export interface Reconciled {
  readonly read: number;
  /** Ids of events that no webhook had brought. */
  readonly missed: readonly string[];
}

const PAGE = 100;
const WAIT_SECONDS = 25;
/** After a long read that the service did not hold. */
const PAUSE_MS = 2_000;
const PAUSE_AFTER_TROUBLE_MS = 5_000;

/** The events of this key's mode, oldest first, in an order that never changes. */
export class Events {
  constructor(private readonly transport: Transport) {}

  /**
   * One page. `after` takes a cursor, or the id of an event as long as that is kept (90 days, Sandbox 30). A cursor never
   * expires, but nobody tells what was dropped behind one that is older than that.
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
   * Every event after `after`, then those that come, without an end: long reads, some two calls a minute while nothing
   * happens. With a `cursorStore` it goes on where it was ended: a cursor is stored when all events of its page have been
   * taken, so the last ones may come again, with ids that you know. The id of an event is no place to go on from: it is
   * refused when the event is no longer kept. A service that is away is waited for. Ends quietly when `signal` aborts,
   * whatever its reason: that is the caller's own way to end it.
   * @throws EsimApiError that trying again does not mend; what `cursorStore` throws
   */
  async *stream(options: StreamOptions = {}): AsyncGenerator<EsimEvent, void, undefined> {
    const { signal } = options;
    try {
      for await (const event of this.#endless(options)) {
        // Its page came before the signal did.
        if (signal?.aborted) return;
        yield event;
      }
    } catch (error) {
      if (!signal?.aborted || error !== signal.reason) throw error;
    }
  }

  /**
   * Reads on from the stored cursor to the end of the feed and hands every event to `handle`. The cursor is stored
   * after each page that was handled: who dies in between reads the page again, and knows its ids.
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
