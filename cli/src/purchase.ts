import { randomUUID } from 'node:crypto';
import type { Context } from './context.js';
import { UnfinishedPurchase } from './exit-codes.js';
import {
  ConnectionError,
  isApiError,
  type NewOrder,
  type NewTopup,
  type Order,
  type PartnerApi,
  type Topup,
} from './partner-api.js';
import { waitUntilEnded } from './wait-until-ended.js';

interface Placed {
  readonly id: string;
  readonly status: string;
}

/** A kind of purchase: its name, how to place it and how to find it again. */
interface Kind<New, Bought extends Placed> {
  readonly noun: string;
  /** Key of its id in the facts of an error. */
  readonly idFact: string;
  /** The command that shows it. */
  readonly shownBy: string;
  readonly place: (api: PartnerApi, wanted: New, idempotencyKey: string) => Promise<Bought>;
  readonly read: (api: PartnerApi, id: string, waitSeconds?: number) => Promise<Bought>;
}

export const ORDER: Kind<NewOrder, Order> = {
  noun: 'order',
  idFact: 'order_id',
  shownBy: 'esim orders get',
  place: (api, order, key) => api.placeOrder(order, key),
  read: (api, id, waitSeconds) => api.order(id, waitSeconds),
};

export const TOPUP: Kind<NewTopup, Topup> = {
  noun: 'top-up',
  idFact: 'topup_id',
  shownBy: 'esim topups get',
  place: (api, topup, key) => api.placeTopup(topup, key),
  read: (api, id, waitSeconds) => api.topup(id, waitSeconds),
};

/**
 * An order or top-up that is placed once. It can be found again however the program ends: Ctrl-C, an outage or a kill.
 */
export class Purchase<New, Bought extends Placed> {
  constructor(
    private readonly context: Context,
    private readonly api: PartnerApi,
    private readonly kind: Kind<New, Bought>,
    /** Key of an earlier try; by default a new one. */
    private readonly idempotencyKey: string = randomUUID(),
  ) {}

  /** @throws UnfinishedPurchase unless the service certainly refused or never received the call */
  async place(wanted: New): Promise<Bought> {
    const { idempotencyKey, kind } = this;
    // Print the key before the call, because a kill or a closed terminal leaves no time afterwards.
    this.context.output.keep(`idempotency key ${idempotencyKey}`);
    try {
      return await kind.place(this.api, wanted, idempotencyKey);
    } catch (error) {
      if (isCertainlyNotPlaced(error)) throw error;
      throw new UnfinishedPurchase(
        error,
        `the ${kind.noun} may have been placed; repeat the command with --idempotency-key ${idempotencyKey}`,
        { idempotency_key: idempotencyKey },
      );
    }
  }

  /**
   * Waits until `placed` has ended.
   * @throws UnfinishedPurchase with its id if the wait fails before that
   */
  async end({ id, status }: Placed, withinSeconds: number): Promise<Bought> {
    const { context, idempotencyKey, kind } = this;
    context.output.keep(`${id} is ${status}`);
    try {
      return await waitUntilEnded((wait) => kind.read(this.api, id, wait), { ...context, withinSeconds });
    } catch (error) {
      throw new UnfinishedPurchase(
        error,
        `the ${kind.noun} is still in progress; check it with \`${kind.shownBy} ${id}${context.live ? ' --live' : ''}\``,
        { [kind.idFact]: id, idempotency_key: idempotencyKey },
      );
    }
  }
}

/** The last attempt says nothing about earlier ones, so use the SDK's record of all attempts. */
function isCertainlyNotPlaced(error: unknown): boolean {
  return (isApiError(error) || error instanceof ConnectionError) && !error.call.mayHaveArrived;
}
