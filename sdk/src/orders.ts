import type { Events } from './events.js';
import { type List, listOf } from './list.js';
import { get, part, post } from './resources.js';
import { type CallOptions, pause, type Transport, type WriteOptions } from './transport.js';
import type { NewOrder, Order, OrderFilters } from './types.js';

export interface WaitOptions {
  /** Default 60 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const WAIT_MS = 60_000;
/** No event tells how a cancellation ended. */
const LOOK_EVERY_MS = 2_000;
const MOST_WAIT_SECONDS = 25;

export class Orders {
  constructor(
    private readonly transport: Transport,
    private readonly events: Events,
  ) {}

  /**
   * Places an order; it takes effect once, however often it is tried. A process that may die uses `Purchases`.
   * @throws EsimApiError with a code of `CodesOf['placeOrder']`, EsimConnectionError
   */
  place(order: NewOrder, options?: WriteOptions): Promise<Order> {
    return post(this.transport, '/orders', order, options);
  }

  get(id: string, options?: CallOptions): Promise<Order> {
    return get(this.transport, `/orders/${part(id)}`, options);
  }

  /** `await` gives the first page, `for await` every order. */
  list(filters?: OrderFilters, options?: CallOptions): List<Order> {
    return listOf(this.transport, '/orders', filters, options);
  }

  /** Every order, page by page. */
  iterate(filters?: OrderFilters, options?: CallOptions): AsyncIterable<Order> {
    return this.list({ limit: 100, ...filters }, options);
  }

  cancel(id: string, options?: WriteOptions): Promise<Order> {
    return post(this.transport, `/orders/${part(id)}/cancel`, undefined, options);
  }

  /**
   * Waits until the order has ended (issued, partially issued, failed or canceled), with long reads of its events
   * instead of polling. Answers the order as it is when the time is over, so look at its `status`.
   */
  async waitFor(id: string, { timeoutMs = WAIT_MS, signal }: WaitOptions = {}): Promise<Order> {
    const endsAt = performance.now() + timeoutMs;
    const options = signal ? { signal } : {};
    let after: string | undefined;
    for (;;) {
      const order = await this.get(id, options);
      const leftMs = endsAt - performance.now();
      if (!isOpen(order) || leftMs <= 0) return order;
      if (order.status === 'canceling') {
        await pause(Math.min(LOOK_EVERY_MS, leftMs), signal);
        continue;
      }
      const waitSeconds = Math.min(MOST_WAIT_SECONDS, Math.ceil(leftMs / 1_000));
      const page = await this.events.list(
        { subject: id, ...(after ? { after } : {}) },
        { ...options, waitSeconds },
      );
      after = page.nextCursor;
      if (page.data.length === 0 && !page.waited) await pause(Math.min(LOOK_EVERY_MS, leftMs), signal);
    }
  }
}

function isOpen({ status }: Order): boolean {
  return status === 'pending' || status === 'processing' || status === 'canceling';
}
