import type { EsimClient } from './client.js';
import { type EsimApiError, isApiError } from './errors.js';
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
  /**
   * Keeps the intent unless one of its kind and id is there, and returns the stored one. One that ended as
   * refused gives way: the new one is open. Of two at once, one is first, and both get that one.
   */
  add(intent: Intent): Promise<Intent>;
  /** Ends this very intent, not another one of its id; one that ended as bought stays so. */
  finish(intent: Intent, outcome: IntentOutcome): Promise<void>;
  /** Those that have not ended. */
  listOpen(): Promise<readonly Intent[]>;
}

export interface Resumed {
  readonly intent: Intent;
  readonly result: Order | Topup | null;
  /** Why there is no result. The next `resume` retries temporary failures and ends final ones. */
  readonly error: unknown;
}

/** Another purchase than this one has the id: the same id is the same purchase, until that has ended as refused. */
export class IntentConflictError extends Error {
  override readonly name = 'IntentConflictError';

  constructor(readonly stored: Intent) {
    super(
      `The id ${stored.id} belongs to another purchase, the ${stored.kind} of ${stored.body.package_id}. Use another id for this purchase.`,
    );
  }
}

/**
 * Purchases that a process may die in the midst of: the intent is stored before the first byte leaves, and `resume`, to
 * be called at every start, takes up those that are open. Within 24 hours the idempotency key gives the same purchase,
 * after them the reference, which is unique forever. The ids of orders and of top-ups are apart, as at the service.
 */
export class Purchases {
  constructor(
    private readonly client: EsimClient,
    private readonly store: IntentStore,
  ) {}

  /**
   * Buys once, however often it is called. A purchase that was refused before is tried anew, with a new key; its order
   * may be another one then.
   * @param id your own id of the purchase; the same id is the same purchase
   * @throws EsimApiError when `endsPurchase` says so the purchase has ended as refused, with any other it is open;
   * EsimConnectionError; IntentConflictError; TypeError for an id that is no reference; the reason of `signal`, which
   * leaves the purchase open
   */
  async placeOrder(id: string, order: Omit<NewOrder, 'reference'>, options?: CallOptions): Promise<Order> {
    const intent = { id, idempotencyKey: crypto.randomUUID(), kind: 'order' } as const;
    return (await this.place({ ...intent, body: { ...order, reference: id } }, options)) as Order;
  }

  /** As `placeOrder`. */
  async placeTopup(id: string, topup: Omit<NewTopup, 'reference'>, options?: CallOptions): Promise<Topup> {
    const intent = { id, idempotencyKey: crypto.randomUUID(), kind: 'topup' } as const;
    return (await this.place({ ...intent, body: { ...topup, reference: id } }, options)) as Topup;
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

  private async place(wanted: Intent, options?: CallOptions): Promise<Order | Topup> {
    if (!REFERENCE.test(wanted.id))
      throw new TypeError(
        'The id of the purchase is invalid. Pass 1 to 64 printable ASCII characters, for example booking-4711.',
      );
    const intent = await this.store.add(wanted);
    if (!isSamePurchase(intent, wanted)) throw new IntentConflictError(intent);
    return this.finish(intent, options);
  }

  private async finish(intent: Intent, options?: CallOptions): Promise<Order | Topup> {
    const ended = await this.buyOrFind(intent, options);
    if (ended.result === null) {
      await this.store.finish(intent, { refusedWith: ended.refusal.code });
      throw ended.refusal;
    }
    await this.store.finish(intent, { resultId: ended.result.id });
    return ended.result;
  }

  /**
   * A refusal says nothing of an earlier try whose key the service has forgotten (the package may be gone since), so a
   * purchase is refused only when its reference is nowhere. When that cannot be looked up, the intent stays open.
   */
  private async buyOrFind(intent: Intent, options?: CallOptions): Promise<Ended> {
    try {
      return { result: await this.send(intent, options) };
    } catch (error) {
      if (!endsPurchase(error)) throw error;
      const result = await this.findBought(intent, options);
      return result === null ? { result, refusal: error } : { result };
    }
  }

  private send(intent: Intent, options?: CallOptions): Promise<Order | Topup> {
    const write = { ...options, idempotencyKey: intent.idempotencyKey };
    return intent.kind === 'order'
      ? this.client.orders.place(intent.body, write)
      : this.client.topups.place(intent.body, write);
  }

  /** Null when nothing has the reference, or another purchase. */
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

type Ended = { readonly result: Order | Topup } | { readonly result: null; readonly refusal: EsimApiError };

/** A reference that the service accepts. */
const REFERENCE = /^[\x20-\x7e]{1,64}$/;

/**
 * Whether a purchase that threw this has ended as refused: nothing was bought, and nothing will be. Any other error
 * leaves it open for the next `resume`: also a key that was revoked or a partner that is suspended (401, 403), which
 * says nothing of what was bought before.
 */
export function endsPurchase(error: unknown): error is EsimApiError {
  return isApiError(error) && !error.retryable && error.status !== 401 && error.status !== 403;
}

/** Where a store keeps an intent: an order and a top-up of one id are two purchases. No order's id has a line feed. */
export function storageNameOf({ kind, id }: Pick<Intent, 'kind' | 'id'>): string {
  return kind === 'order' ? id : `${kind}\n${id}`;
}

function isSamePurchase(one: Intent, other: Intent): boolean {
  return one.kind === other.kind && canonical(one.body) === canonical(other.body);
}

/** JSON whose fields have one order; a field that is null or not there is the same to the service. */
function canonical(body: object): string {
  return JSON.stringify(body, (_name, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([, inner]) => inner != null)
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        )
      : value,
  );
}
