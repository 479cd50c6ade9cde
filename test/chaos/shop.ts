import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ApiAnswer, HttpClient } from '../harness/index.js';

export interface Purchase {
  readonly key: string;
  readonly packageId: string;
  readonly quantity: number;
}

const GIVE_UP_MS = 60_000;
const PAUSE_MS = 30;

/** A partner that wants every order exactly once and repeats an interrupted call with the same key. */
export class Shop {
  /** Order ids of all 202 responses, by idempotency key. */
  readonly accepted = new Map<string, { readonly orderId: string; readonly purchase: Purchase }>();
  /** Calls that started and got no response. */
  cutCalls = 0;
  replays = 0;

  constructor(private readonly api: HttpClient) {}

  /** Repeats the call until it gets a response, and fails if the same key returns another order. */
  async buy(packageId: string, quantity: number, repeat: boolean): Promise<void> {
    const purchase = { key: randomUUID(), packageId, quantity };
    const answer = await this.insist(purchase);
    if (repeat) expect((await this.insist(purchase)).text).toBe(answer.text);
  }

  private async insist(purchase: Purchase): Promise<ApiAnswer> {
    const deadline = performance.now() + GIVE_UP_MS;
    for (;;) {
      const answer = await this.call(purchase);
      if (answer?.status === 202) return this.note(purchase, answer);
      // Retry only responses with `retryable: true` (D6).
      if (answer) expect(answer.body?.retryable, answer.text).toBe(true);
      if (performance.now() > deadline) throw new Error(`no answer within ${GIVE_UP_MS} ms`);
      await sleep(PAUSE_MS);
    }
  }

  private async call({ key, packageId, quantity }: Purchase): Promise<ApiAnswer | null> {
    try {
      const body = { package_id: packageId, quantity };
      return await this.api.post('/v1/orders', body, { idempotencyKey: key });
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { code?: string };
      if (code !== 'ECONNREFUSED') this.cutCalls++;
      return null;
    }
  }

  private note(purchase: Purchase, answer: ApiAnswer): ApiAnswer {
    const orderId = answer.body.data.id as string;
    const known = this.accepted.get(purchase.key);
    if (known) expect(orderId).toBe(known.orderId);
    else this.accepted.set(purchase.key, { orderId, purchase });
    if (answer.headers.get('idempotent-replayed') === 'true') this.replays++;
    return answer;
  }
}
