import type { EsimClient } from './client.js';
import { isApiError } from './errors.js';
import type { CallOptions } from './transport.js';
import type { NewOrder, NewTopup, Order, Topup } from './types.js';

/** A purchase that was decided: with this alone any process can finish it, and none can buy it twice. */
export type Intent = {
  /** The partner's own id of the purchase, and its `reference` at the service: 1 to 64 printable ASCII characters. */
  readonly id: string;
  readonly idempotencyKey: string;
} & (
  { readonly kind: 'order'; readonly body: NewOrder } | { readonly kind: 'topup'; readonly body: NewTopup }
);

/** How a purchase ended: as an order or a top-up, or refused with a code. */
export type IntentOutcome = { readonly resultId: string } | { readonly refusedWith: string };

/** Remembers intents. Every method answers only after what it changed survives the death of the machine. */
export interface IntentStore {
  /** Keeps the intent unless one of its id is there; answers the one that is there now. */
  add(intent: Intent): Promise<Intent>;
  finish(id: string, outcome: IntentOutcome): Promise<void>;
  /** Those that have not ended. */
  listOpen(): Promise<readonly Intent[]>;
}

export interface Resumed {
  readonly intent: Intent;
  readonly result: Order | Topup | null;
  /** Why there is no result. What may pass is tried at the next `resume`, what is final is ended. */
  readonly error: unknown;
}

/**
 * Purchases that a process may die in the midst of: the intent is stored before the first byte leaves, and `resume`, to
 * be called at every start, takes up those that are open. Within 24 hours the idempotency key gives the same purchase,
 * after them the reference, which is unique for ever.
 */
export class Purchases {
  constructor(
    private readonly client: EsimClient,
    private readonly store: IntentStore,
  ) {}

  /** @param id your own id of the purchase; the same id is the same purchase. @throws EsimApiError, EsimConnectionError */
  async placeOrder(id: string, order: Omit<NewOrder, 'reference'>, options?: CallOptions): Promise<Order> {
    const body = { ...order, reference: id };
    const intent = await this.store.add({ id, idempotencyKey: crypto.randomUUID(), kind: 'order', body });
    return (await this.finish(intent, options)) as Order;
  }

  /** As `placeOrder`. */
  async placeTopup(id: string, topup: Omit<NewTopup, 'reference'>, options?: CallOptions): Promise<Topup> {
    const body = { ...topup, reference: id };
    const intent = await this.store.add({ id, idempotencyKey: crypto.randomUUID(), kind: 'topup', body });
    return (await this.finish(intent, options)) as Topup;
  }

  /** Takes up every intent that has not ended, one after the other. */
  async resume(options?: CallOptions): Promise<readonly Resumed[]> {
    const resumed: Resumed[] = [];
    for (const intent of await this.store.listOpen()) {
      try {
        resumed.push({ intent, result: await this.finish(intent, options), error: null });
      } catch (error) {
        options?.signal?.throwIfAborted();
        resumed.push({ intent, result: null, error });
      }
    }
    return resumed;
  }

  private async finish(intent: Intent, options?: CallOptions): Promise<Order | Topup> {
    try {
      const result = await this.send(intent, options);
      await this.store.finish(intent.id, { resultId: result.id });
      return result;
    } catch (error) {
      if (isApiError(error) && isFinal(error.status, error.retryable))
        await this.store.finish(intent.id, { refusedWith: error.code });
      throw error;
    }
  }

  private async send(intent: Intent, options?: CallOptions): Promise<Order | Topup> {
    const { client } = this;
    const write = { ...options, idempotencyKey: intent.idempotencyKey };
    try {
      return intent.kind === 'order'
        ? await client.orders.place(intent.body, write)
        : await client.topups.place(intent.body, write);
    } catch (error) {
      if (!isApiError(error, 'reference_taken')) throw error;
      const found = await this.findBought(intent, options);
      if (found === null) throw error;
      return found;
    }
  }

  /** The purchase of an earlier try whose key the service has forgotten; null when the reference is of another one. */
  private async findBought(intent: Intent, options?: CallOptions): Promise<Order | Topup | null> {
    const filters = { reference: intent.id };
    if (intent.kind === 'order') {
      const [order] = (await this.client.orders.list(filters, options)).data;
      const { package_id, quantity } = intent.body;
      return order?.package_id === package_id && order.quantity === (quantity ?? 1) ? order : null;
    }
    const [topup] = (await this.client.topups.list(filters, options)).data;
    const { package_id, esim_id } = intent.body;
    return topup?.package_id === package_id && topup.esim_id === esim_id ? topup : null;
  }
}

/** A key that was revoked or a partner that is suspended says nothing of the purchase: it may have been bought before. */
function isFinal(status: number, retryable: boolean): boolean {
  return !retryable && status !== 401 && status !== 403;
}
