import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProviderOutcomeUnknown } from '../../src/providers/index.js';
import { type ApiAnswer, eventually, type HttpClient } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, place, PRICE, statement } from './live-shop.js';
import { eventsOf, SupportDesk } from './support-desk.js';

let shop: LiveShop;
let desk: SupportDesk;
let buyer: LiveBuyer;

beforeAll(async () => {
  shop = await LiveShop.open();
  desk = new SupportDesk(shop);
  await shop.startWorker();
});

afterAll(() => shop.close());

beforeEach(async () => {
  buyer = await shop.buyer(10 * PRICE);
});

afterEach(async () => {
  desk.calmUpstream();
  await expectBooksToAddUp(shop.database);
});

describe('a cancellation that support ends', () => {
  interface Hanging {
    readonly id: string;
    /** What the provider calls its eSIMs. */
    readonly esims: readonly string[];
  }

  /** An order whose cancellation the provider does not answer. */
  async function hanging(quantity: number, issued = quantity): Promise<Hanging> {
    shop.liveProvider.script = [(order) => shop.liveProvider.provision(order, issued)];
    const { id } = await place(buyer, quantity);
    await shop.settled(buyer, id as string);
    shop.liveProvider.cancelState = () => {
      throw new ProviderOutcomeUnknown();
    };
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    await desk.atRest(id as string);
    const { rows } = await shop.database.pool.query<{ provider_esim_id: string }>(
      'SELECT provider_esim_id FROM esims WHERE order_id = $1 ORDER BY id',
      [id],
    );
    return { id: id as string, esims: rows.map((row) => row.provider_esim_id) };
  }

  const statusesOf = (answer: ApiAnswer): string[] =>
    (answer.body.data.esims as Json[]).map((esim) => esim['status'] as string).sort();

  it('did not happen: the order is where it was, and may be canceled again', async () => {
    const { id } = await hanging(2, 1);
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.body.data).toMatchObject({
      status: 'partially_issued',
      cancel_failure: { code: 'provider_unavailable' },
      refunded: { amount: PRICE },
    });
    expect(statusesOf(answer)).toEqual(['issued']);
    expect(await balance(buyer)).toEqual({ posted: 9 * PRICE, held: 0, available: 9 * PRICE });
    expect(await eventsOf(buyer, id)).toMatchObject([{ type: 'order.issued' }]);
    shop.liveProvider.cancelState = () => ({ state: 'canceled' });
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    expect(await shop.settled(buyer, id)).toMatchObject({
      status: 'canceled',
      refunded: { amount: 2 * PRICE },
    });
  });

  it('did happen: canceled and refunded, without an event', async () => {
    const { id } = await hanging(2);
    const answer = await desk.reconcile(id, 'mark_failed');
    expect(answer.body.data).toMatchObject({
      status: 'canceled',
      cancel_failure: null,
      refunded: { amount: 2 * PRICE },
    });
    expect(statusesOf(answer)).toEqual(['canceled', 'canceled']);
    expect(await balance(buyer)).toEqual({ posted: 10 * PRICE, held: 0, available: 10 * PRICE });
    expect((await statement(buyer))[0]).toEqual(['refund', 2 * PRICE]);
    expect(await eventsOf(buyer, id)).toMatchObject([{ type: 'order.issued' }]);
    expect(await shop.row(id)).toMatchObject({ next_attempt_at: null, cancel_requested_at: null });
  });

  it('is never said not to have happened when the provider has the order back', async () => {
    const { id, esims } = await hanging(2);
    for (const esim of esims) shop.liveProvider.cancelStatuses.set(esim, 'canceled');
    await desk.expectRefused(id, 'mark_issued', /mark it failed/);
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'canceled' });
  });

  it('is never said to have happened when an eSIM is in use; what was taken back is refunded', async () => {
    const { id, esims } = await hanging(2);
    shop.liveProvider.cancelStatuses.set(esims[0]!, 'in_use');
    shop.liveProvider.cancelStatuses.set(esims[1]!, 'canceled');
    expect(await desk.look(id)).toMatchObject({
      status: 'canceling',
      answered: true,
      esims: [
        { provider_esim_id: esims[0], standing: 'in_use' },
        { provider_esim_id: esims[1], standing: 'canceled' },
      ],
      actions: ['requery', 'mark_issued'],
    });
    await desk.expectRefused(id, 'mark_failed', /in use/);
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.body.data).toMatchObject({ status: 'issued', refunded: { amount: PRICE } });
    expect(statusesOf(answer)).toEqual(['canceled', 'issued']);
    expect((await statement(buyer))[0]).toEqual(['refund', PRICE]);
  });

  it('is not said not to have happened while the provider is at it', async () => {
    const { id, esims } = await hanging(1);
    shop.liveProvider.cancelStatuses.set(esims[0]!, 'being_canceled');
    expect(await desk.look(id)).toMatchObject({ running: 1, actions: ['requery', 'mark_failed'] });
    await desk.expectRefused(id, 'mark_issued', /right now/);
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'canceled' });
  });

  it.each([
    ['mark_issued', 'issued'],
    ['mark_failed', 'canceled'],
  ] as const)('is for support to decide when the provider is silent: %s', async (action, status) => {
    const { id } = await hanging(1);
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    expect(await desk.look(id)).toMatchObject({
      answered: false,
      actions: ['requery', 'mark_issued', 'mark_failed'],
    });
    expect((await desk.reconcile(id, action)).body.data).toMatchObject({ status });
  });

  it('is not ended while a worker asks, nor said not to have happened right after one asked', async () => {
    const { id } = await hanging(1);
    await desk.change(id, `lease_until = now() + interval '1 minute'`);
    const asked = vi.spyOn(shop.liveProvider, 'findCancelStatuses');
    for (const action of ['mark_issued', 'mark_failed'] as const)
      await desk.expectRefused(id, action, /being asked right now/);
    expect(asked, 'what it said now would be older than what the worker hears').not.toHaveBeenCalled();
    asked.mockRestore();
    await desk.change(id, 'lease_until = NULL');
    shop.liveProvider.readLagMs = 60_000;
    await desk.expectRefused(id, 'mark_issued', /try again in \d\d s/);
    await desk.change(id, `updated_at = now() - interval '61 seconds'`);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
  });

  it('has nothing to take back when no eSIM is left', async () => {
    const { id } = await hanging(1);
    await shop.database.pool.query(`UPDATE esims SET status = 'canceled' WHERE order_id = $1`, [id]);
    await desk.expectRefused(id, 'mark_failed', /mark it issued/);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
  });
});

describe('a cancellation in Sandbox that support ends', () => {
  let sandbox: HttpClient;
  beforeEach(async () => {
    sandbox = shop.api.partnerApi(await shop.office.createKey(buyer.id, 'sandbox'));
  });

  /** An issued order whose cancellation no worker has taken up. */
  async function waiting(): Promise<string> {
    const { id } = (await sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 2 })).body.data;
    await eventually('it is issued', async () => (await shop.row(id as string))['status'] === 'issued');
    await desk.change(
      id as string,
      `status = 'canceling', status_before_cancel = 'issued', cancel_requested_at = now(),
       next_attempt_at = now() + interval '1 hour'`,
    );
    return id as string;
  }

  it('did not happen, or did', async () => {
    const [kept, gone] = [await waiting(), await waiting()];
    expect((await desk.reconcile(kept, 'mark_issued')).body.data).toMatchObject({
      status: 'issued',
      cancel_failure: { code: 'provider_unavailable' },
    });
    await shop.database.pool.query(
      `UPDATE sandbox_upstream_orders SET canceled_at = now()
       WHERE reference = (SELECT provider_reference FROM orders WHERE id = $1)`,
      [gone],
    );
    await desk.expectRefused(gone, 'mark_issued', /mark it failed/);
    expect((await desk.reconcile(gone, 'mark_failed')).body.data).toMatchObject({ status: 'canceled' });
  });

  it('is never said to have happened when a device has an eSIM', async () => {
    const id = await waiting();
    await shop.database.pool.query(
      `UPDATE esims SET profile_status = 'installed'
       WHERE id = (SELECT id FROM esims WHERE order_id = $1 LIMIT 1)`,
      [id],
    );
    await desk.expectRefused(id, 'mark_failed', /in use/);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
  });
});
