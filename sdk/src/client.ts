import { Events } from './events.js';
import type { Account } from './generated/types.gen.js';
import { Orders } from './orders.js';
import { Catalog, Esims, get, Refunds, Requests, Sandbox, Wallet } from './resources.js';
import { Topups } from './topups.js';
import { type CallOptions, modeOf, Transport, type TransportOptions } from './transport.js';

export type EsimClientOptions = TransportOptions;

/** A client of the partner API. It has no state except its settings, so one instance per process is enough. */
export class EsimClient {
  /** Derived from the key; null for a key of another form. */
  readonly mode: 'sandbox' | 'live' | null;
  readonly catalog: Catalog;
  readonly orders: Orders;
  readonly esims: Esims;
  readonly topups: Topups;
  readonly refunds: Refunds;
  readonly wallet: Wallet;
  readonly events: Events;
  readonly requests: Requests;
  /** Works with Sandbox keys only. */
  readonly sandbox: Sandbox;
  readonly #transport: Transport;

  constructor(options: EsimClientOptions) {
    const transport = new Transport(options);
    this.mode = modeOf(options.apiKey.trim());
    this.#transport = transport;
    this.catalog = new Catalog(transport);
    this.events = new Events(transport);
    this.requests = new Requests(transport);
    this.orders = new Orders(transport);
    this.esims = new Esims(transport);
    this.topups = new Topups(transport);
    this.refunds = new Refunds(transport);
    this.wallet = new Wallet(transport);
    this.sandbox = new Sandbox(transport);
  }

  /** Returns the key's partner and its limits. */
  me(options?: CallOptions): Promise<Account> {
    return get(this.#transport, '/me', options);
  }
}
