import { type List, listOf } from './list.js';
import { get, part, post } from './resources.js';
import type { CallOptions, Transport, WaitingRead, WriteOptions } from './transport.js';
import type { NewOrder, Order, OrderFilters } from './types.js';
import { type WaitOptions, waitUntilEnded } from './wait.js';

export class Orders {
  constructor(private readonly transport: Transport) {}

  /**
   * Places an order. It takes effect at most once, however often the call is retried. If your process may crash, use
   * `Purchases`.
   * @throws EsimApiError with a code of `CodesOf['placeOrder']`, EsimConnectionError
   */
  place(order: NewOrder, options?: WriteOptions): Promise<Order> {
    return post(this.transport, '/orders', order, options);
  }

  get(id: string, options?: WaitingRead): Promise<Order> {
    return get(this.transport, `/orders/${part(id)}`, options);
  }

  /** `await` returns the first page; `for await` iterates over all orders. */
  list(filters?: OrderFilters, options?: CallOptions): List<Order> {
    return listOf(this.transport, '/orders', filters, options);
  }

  /** Iterates over all orders, page by page. */
  iterate(filters?: OrderFilters, options?: CallOptions): AsyncIterable<Order> {
    return this.list({ limit: 100, ...filters }, options);
  }

  cancel(id: string, options?: WriteOptions): Promise<Order> {
    return post(this.transport, `/orders/${part(id)}/cancel`, undefined, options);
  }

  /**
   * Waits until the order has ended (issued, partially issued, failed or canceled). The service holds
   * each read until then.
   * After the timeout, it returns the order in its current state, so check its `status`.
   */
  waitFor(id: string, options?: WaitOptions): Promise<Order> {
    return waitUntilEnded((call) => this.get(id, call), options);
  }
}
