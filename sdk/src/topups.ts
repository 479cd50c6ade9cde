import { type List, listOf } from './list.js';
import { get, part, post } from './resources.js';
import type { CallOptions, Transport, WaitingRead, WriteOptions } from './transport.js';
import type { NewTopup, Topup, TopupFilters } from './types.js';
import { type WaitOptions, waitUntilEnded } from './wait.js';

export class Topups {
  constructor(private readonly transport: Transport) {}

  /**
   * Places a top-up. It takes effect at most once, however often the call is retried. If your process may crash, use
   * `Purchases`.
   * @throws EsimApiError with a code of `CodesOf['placeTopup']`, EsimConnectionError
   */
  place(topup: NewTopup, options?: WriteOptions): Promise<Topup> {
    return post(this.transport, '/topups', topup, options);
  }

  /** `await` returns the first page; `for await` iterates over all top-ups. */
  list(filters?: TopupFilters, options?: CallOptions): List<Topup> {
    return listOf(this.transport, '/topups', filters, options);
  }

  get(id: string, options?: WaitingRead): Promise<Topup> {
    return get(this.transport, `/topups/${part(id)}`, options);
  }

  /**
   * Waits until the top-up has ended (completed or failed). The service holds
   * each read until then. After the timeout, it
   * returns the top-up in its current state, so check its `status`.
   */
  waitFor(id: string, options?: WaitOptions): Promise<Topup> {
    return waitUntilEnded((call) => this.get(id, call), options);
  }
}
