import { randomUUID } from 'node:crypto';
import {
  ProviderOutcomeUnknown,
  type ProviderTopupState,
  ProviderUnavailable,
} from '../../src/providers/index.js';
import { type ApiAnswer, eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import type { ScriptedShop } from './scripted-shop.js';
import type { Answer } from './scripted-upstream.js';

export const silence: Answer = () => Promise.reject(new ProviderOutcomeUnknown());
export const unavailable: Answer = () => Promise.reject(new ProviderUnavailable(1_000));
export const nothing: Answer = () => Promise.resolve(null);
export const says =
  (state: ProviderTopupState): Answer =>
  () =>
    Promise.resolve(state);
export const done = says({ state: 'completed', totalBytes: null, expiresAt: null });
export const working = says({ state: 'in_progress', checkAfterMs: 50 });
export const FAILURE = { code: 'package_unavailable', reason: 'Out of stock.' } as const;
export const refused = says({ state: 'rejected', failure: FAILURE });

/** An answer that comes when the test lets it. */
export class HeldAnswer {
  isAsked = false;
  release!: () => void;
  private readonly held = new Promise<void>((resolve) => (this.release = resolve));

  answer(then: Answer): Answer {
    return async () => {
      this.isAsked = true;
      await this.held;
      return then();
    };
  }
}

export interface Topup {
  readonly id: string;
  /** The provider's calls name it so. */
  readonly reference: string;
}

/** Top-ups of the shop that their provider says nothing about, and support's word on them. */
export class StuckTopups {
  constructor(private readonly shop: ScriptedShop) {}

  async accepted(answers: readonly Answer[]): Promise<Topup> {
    const { id, providerReference: reference } = await this.shop.accept(answers);
    return { id, reference };
  }

  /** One that was placed longer ago than the read lag, and that no worker looks at again. */
  async topup(answer = silence): Promise<Topup> {
    const topup = await this.accepted(Array<Answer>(20).fill(answer));
    await eventually(`nothing was heard of ${topup.id}`, async () => {
      const { rowCount } = await this.shop.database.pool.query(
        `UPDATE topups SET next_attempt_at = now() + interval '1 hour',
           upstream_placed_at = upstream_placed_at - interval '1 minute'
         WHERE id = $1 AND last_error IS NOT NULL AND lease_until IS NULL`,
        [topup.id],
      );
      return rowCount === 1;
    });
    return topup;
  }

  /** As `topup`; from now on the provider answers this. */
  async topupThen(answer: Answer): Promise<Topup> {
    const topup = await this.topup();
    this.shop.upstream.script(topup.reference, Array<Answer>(5).fill(answer));
    return topup;
  }

  /** Fifteen minutes is the default limit. */
  async backdate({ id }: Topup, minutes: number): Promise<void> {
    await this.shop.database.pool.query(
      `UPDATE topups SET created_at = now() - $2 * interval '1 minute' WHERE id = $1`,
      [id, minutes],
    );
  }

  reconcile({ id }: Topup, action: string, idempotencyKey = randomUUID()): Promise<ApiAnswer> {
    const body = { action, note: 'asked the wholesaler' };
    return this.shop.office.admin.post(`/internal/v1/topups/${id}/reconcile`, body, { idempotencyKey });
  }

  async esim(): Promise<Json> {
    return (await this.shop.live.get(`/v1/esims/${this.shop.esimId}`)).body.data as Json;
  }

  async totalBytes(): Promise<number> {
    return (await this.esim())['data'].total_bytes as number;
  }

  /** All that an end would change: status, lease, money and events. */
  async state(topup: Topup): Promise<unknown> {
    const [row, balance] = [await this.shop.row(topup.id), await this.shop.balance()];
    return { row, balance, events: await this.events(topup), charges: await this.charges(topup) };
  }

  async events({ id }: Topup): Promise<Json[]> {
    return (await readFeed(this.shop.live)).filter((event) => event['data'].topup_id === id);
  }

  /** The amounts of the top-up's transactions, in cents. */
  async charges({ id }: Topup): Promise<number[]> {
    const { rows } = await this.shop.database.pool.query<{ amount: string }>(
      'SELECT amount FROM ledger_transactions WHERE topup_id = $1',
      [id],
    );
    return rows.map(({ amount }) => Number(amount));
  }
}
