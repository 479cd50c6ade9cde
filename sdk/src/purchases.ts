import type { EsimClient } from './client.js';
import { type EsimApiError, isApiError } from './errors.js';
import type { CallOptions } from './transport.js';
import type { NewOrder, NewTopup, Order, Topup } from './types.js';

/** A purchase that you decided to make. With this data, any process can finish it, and none can buy it twice. */
export type Intent = {
  /** Your own id for the purchase, which is also its `reference` at the service: 1 to 64 printable ASCII characters. */
  readonly id: string;
  readonly idempotencyKey: string;
} & (
  { readonly kind: 'order'; readonly body: NewOrder } | { readonly kind: 'topup'; readonly body: NewTopup }
);

/** The outcome of a purchase: the id of the order or top-up, or the code of the refusal. */
export type IntentOutcome = { readonly resultId: string } | { readonly refusedWith: string };

/** Stores intents. Every method must resolve only when its change would survive a crash of the machine. */
export interface IntentStore {
  /**
   * Adds the intent unless one of the same kind and id exists, and returns the stored one. The new intent replaces one
   * that was refused. Of two concurrent calls one wins, and both return its intent.
   */
  add(intent: Intent): Promise<Intent>;
  /** Ends this intent, but no other one with its id. An intent that ended as bought must not change. */
  finish(intent: Intent, outcome: IntentOutcome): Promise<void>;
  /** Returns the intents that have not ended. */
  listOpen(): Promise<readonly Intent[]>;
}

export interface Resumed {
  readonly intent: Intent;
  readonly result: Order | Topup | null;
  /** Why there is no result. The next `resume` retries temporary failures and ends final ones. */
  readonly error: unknown;
}

/** The id belongs to a different purchase. An id can be reused for another purchase only after a refusal. */
export class IntentConflictError extends Error {
  override readonly name = 'IntentConflictError';

  constructor(readonly stored: Intent) {
    super(
      `The id ${stored.id} belongs to another purchase, the ${stored.kind} of ${stored.body.package_id}. Use another id for this purchase.`,
    );
  }
}

/**
 * Makes purchases that survive a crash of the process. It stores the intent before it sends anything. Call `resume` at
 * every start to continue open intents. Within 24 hours, the idempotency key finds the purchase again; after that, the
 * reference does, which stays unique forever. Orders and top-ups have separate ids, as in the service.
 */
export class Purchases {
  constructor(
    private readonly client: EsimClient,
    private readonly store: IntentStore,
  ) {}

  /**
   * Buys once, however often it is called. A purchase that was refused is attempted again with a new key, and then the
   * order may differ.
   * @param id your own id for the purchase. The same id means the same purchase.
   * @throws EsimApiError: if `endsPurchase` returns true for it, the purchase was refused, otherwise it stays open;
   * EsimConnectionError; IntentConflictError; TypeError for an id that is not a valid reference; the reason of
   * `signal`, which leaves the purchase open
   */
  async placeOrder(id: string, order: Omit<NewOrder, 'reference'>, options?: CallOptions): Promise<Order> {
    const intent = { id, idempotencyKey: crypto.randomUUID(), kind: 'order' } as const;
    return (await this.place({ ...intent, body: { ...order, reference: id } }, options)) as Order;
  }

  /** Like `placeOrder`. */
  async placeTopup(id: string, topup: Omit<NewTopup, 'reference'>, options?: CallOptions): Promise<Topup> {
    const intent = { id, idempotencyKey: crypto.randomUUID(), kind: 'topup' } as const;
    return (await this.place({ ...intent, body: { ...topup, reference: id } }, options)) as Topup;
  }

  /** Continues every open intent, one after the other. */
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
   * Buys, or finds what an earlier try bought. A refusal does not prove that an earlier try failed, because the service
   * may have forgotten the key and the package may be gone since. So the purchase counts as refused only if nothing has
   * its reference. If the lookup fails, the intent stays open.
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

  /** @returns null if nothing, or a different purchase, has the reference */
  private async findBought(intent: Intent, options?: CallOptions): Promise<Order | Topup | null> {
    const filters = { reference: intent.id };
    if (intent.kind === 'order') {
      const [order] = (await this.client.orders.list(filters, options)).data;
      const { package_id, quantity } = intent.body;
      const isSame = order?.package_id === package_id && order.quantity === (quantity ?? 1);
      return isSame && hasSameDays(order, intent.body) ? order : null;
    }
    const [topup] = (await this.client.topups.list(filters, options)).data;
    const { package_id, esim_id } = intent.body;
    const isSame = topup?.package_id === package_id && topup.esim_id === esim_id;
    return isSame && hasSameDays(topup, intent.body) ? topup : null;
  }
}

/** Without a number of days, one day is bought of a package sold by the day. */
function hasSameDays(bought: Order | Topup, wanted: Intent['body']): boolean {
  return (bought.days ?? 1) === (wanted.days ?? 1);
}

type Ended = { readonly result: Order | Topup } | { readonly result: null; readonly refusal: EsimApiError };

/** A reference that the service accepts. */
const REFERENCE = /^[\x20-\x7e]{1,64}$/;

/**
 * Whether this error means that the purchase was refused: nothing was bought, and nothing will be. Any other error
 * leaves it open for the next `resume`. This includes a revoked key and a suspended partner (401, 403), which say
 * nothing about earlier tries.
 */
export function endsPurchase(error: unknown): error is EsimApiError {
  return isApiError(error) && !error.retryable && error.status !== 401 && error.status !== 403;
}

/**
 * The name under which a store keeps an intent. An order and a top-up with the same id are two purchases. No order's id
 * contains a line feed.
 */
export function storageNameOf({ kind, id }: Pick<Intent, 'kind' | 'id'>): string {
  return kind === 'order' ? id : `${kind}\n${id}`;
}

function isSamePurchase(one: Intent, other: Intent): boolean {
  return one.kind === other.kind && canonical(one.body) === canonical(other.body);
}

/** JSON with sorted fields. Drops null fields, because the service treats them as absent. */
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
