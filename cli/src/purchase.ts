import { randomUUID } from 'node:crypto';
import type { Context } from './context.js';
import { UnfinishedPurchase } from './exit-codes.js';
import { ConnectionError, isApiError, type NewOrder, type Order, type PartnerApi } from './partner-api.js';
import { waitUntilEnded } from './wait-until-ended.js';

/** An order that is placed once, and can be found again whatever ends the program: Ctrl-C, an outage, a kill. */
export class Purchase {
  constructor(
    private readonly context: Context,
    private readonly api: PartnerApi,
    /** Of an earlier try; else one is made. */
    private readonly idempotencyKey: string = randomUUID(),
  ) {}

  /** @throws UnfinishedPurchase unless the service has certainly refused, or heard nothing */
  async place(order: NewOrder): Promise<Order> {
    const { idempotencyKey } = this;
    // Before the call leaves: a kill, and a terminal that closes, leave no time for words.
    this.context.output.keep(`idempotency key ${idempotencyKey}`);
    try {
      return await this.api.placeOrder(order, idempotencyKey);
    } catch (error) {
      if (isCertainlyNotPlaced(error)) throw error;
      throw new UnfinishedPurchase(
        error,
        `the order may have been placed; try again with --idempotency-key ${idempotencyKey}`,
        { idempotency_key: idempotencyKey },
      );
    }
  }

  /** Waits until `placed` has ended. @throws UnfinishedPurchase with the order when that is not seen */
  async end({ id, status }: Order, withinSeconds: number): Promise<Order> {
    const { context, idempotencyKey } = this;
    context.output.keep(`${id} is ${status}`);
    try {
      return await waitUntilEnded(() => this.api.order(id), { ...context, withinSeconds });
    } catch (error) {
      throw new UnfinishedPurchase(
        error,
        `the order is placed and goes on: esim orders get ${id}${context.live ? ' --live' : ''}`,
        { order_id: id, idempotency_key: idempotencyKey },
      );
    }
  }
}

/** What answered the last try, or did not, says nothing of those before: the SDK knows of all. */
function isCertainlyNotPlaced(error: unknown): boolean {
  return (isApiError(error) || error instanceof ConnectionError) && !error.call.mayHaveArrived;
}
