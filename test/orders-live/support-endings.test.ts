import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProviderOutcomeUnknown, type ProviderProfile } from '../../src/providers/index.js';
import { expectProblem } from '../harness/expect-problem.js';
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

describe('a processing order that support ends', () => {
  /** An order that its provider says nothing about, and what it shows to support. */
  async function stuckOrder(quantity: number): Promise<{ id: string; reference: string }> {
    shop.liveProvider.script = [() => ({ state: 'in_progress', checkAfterMs: 3_600_000 })];
    const { id } = await place(buyer, quantity);
    const row = await desk.atRest(id as string);
    return { id: id as string, reference: row['provider_reference'] as string };
  }

  function mint(quantity: number): readonly ProviderProfile[] {
    const state = shop.liveProvider.provision({ reference: 'not-an-order', quantity });
    return state.state === 'provisioned' ? state.profiles : [];
  }

  it('keeps what was bought of it: never failed, and issued in part, the rest released', async () => {
    const { id, reference } = await stuckOrder(3);
    const profiles = mint(2);
    shop.liveProvider.parts.set(reference, { profiles });
    expect(await desk.look(id)).toEqual({
      order_id: id,
      status: 'processing',
      answered: true,
      esims: profiles.map((profile) => ({
        provider_esim_id: profile.providerEsimId,
        standing: 'provisioned',
      })),
      running: 0,
      unusable: 0,
      actions: ['requery', 'mark_issued'],
    });
    await desk.expectRefused(id, 'mark_failed', /2 of 3 eSIMs are provisioned/);
    expect(await balance(buyer)).toMatchObject({ held: 3 * PRICE });
    const answer = await desk.reconcile(id, 'mark_issued');
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({
      status: 'partially_issued',
      quantity_issued: 2,
      quantity_failed: 1,
      failure: { code: 'provider_unavailable' },
      refunded: { amount: PRICE },
      esims: { length: 2 },
    });
    expect(await balance(buyer)).toEqual({ posted: 8 * PRICE, held: 0, available: 8 * PRICE });
    expect((await statement(buyer))[0]).toEqual(['charge', -2 * PRICE]);
    expect(await eventsOf(buyer, id)).toMatchObject([
      { type: 'order.issued', data: { quantity_issued: 2, quantity_failed: 1 } },
    ]);
    const audit = await shop.office.admin.get('/internal/v1/audit-log?action=order.reconciled&limit=1');
    expect(audit.body.data[0].details.upstream).toBe('2 provisioned, 0 running, 0 unusable');
  });

  it('names the reason that the provider gives for what is missing', async () => {
    const { id, reference } = await stuckOrder(2);
    const failure = { code: 'provider_rejected', reason: 'Taken back.' } as const;
    shop.liveProvider.parts.set(reference, { profiles: mint(1), failure });
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({
      status: 'partially_issued',
      failure,
    });
  });

  it('is ended by nobody while the provider is at a part of it', async () => {
    const { id, reference } = await stuckOrder(2);
    shop.liveProvider.parts.set(reference, { profiles: mint(1), running: 1 });
    expect(await desk.look(id)).toMatchObject({ running: 1, actions: ['requery'] });
    await desk.expectRefused(id, 'mark_issued', /1 of 2 eSIMs are provisioned, 1 under way/);
    await desk.expectRefused(id, 'mark_failed', /1 of 2 eSIMs are provisioned, 1 under way/);
    expect(await balance(buyer)).toMatchObject({ held: 2 * PRICE });
  });

  it('can be failed when nothing that was sold of it can be issued', async () => {
    const { id, reference } = await stuckOrder(1);
    shop.liveProvider.parts.set(reference, { unusable: 1 });
    expect(await desk.look(id)).toMatchObject({
      esims: [],
      unusable: 1,
      actions: ['requery', 'mark_failed'],
    });
    await desk.expectRefused(id, 'mark_issued', /names no eSIM/);
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'failed' });
  });

  it('is given up only when the provider must show what the last placement did, and rests until then', async () => {
    const { id, reference } = await stuckOrder(2);
    shop.liveProvider.readLagMs = 60_000;
    await desk.change(id, `next_attempt_at = now() + interval '1 minute'`);
    await desk.expectRefused(id, 'mark_failed', /try again in \d\d s/);
    shop.liveProvider.parts.set(reference, { profiles: mint(1) });
    await desk.expectRefused(id, 'mark_issued', /try again in \d\d s/);
    const row = await shop.row(id);
    const rests = (row['next_attempt_at'] as Date).getTime() - (row['upstream_placed_at'] as Date).getTime();
    expect(rests, 'a retry would begin the time anew').toBe(180_000);
    await desk.change(id, `upstream_placed_at = now() - interval '61 seconds'`);
    expect((await desk.reconcile(id, 'mark_issued')).body.data).toMatchObject({ status: 'partially_issued' });
  });

  it('is issued at once when all of it is there, and failed at once when it was never placed', async () => {
    shop.liveProvider.readLagMs = 60_000;
    const whole = await stuckOrder(2);
    shop.liveProvider.parts.set(whole.reference, { profiles: mint(2) });
    expect((await desk.reconcile(whole.id, 'mark_issued')).body.data).toMatchObject({ status: 'issued' });
    const { id } = await stuckOrder(1);
    await desk.change(id, 'upstream_placed_at = NULL');
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'failed' });
  });

  it('shows what is left to decide when the provider is silent, and nothing once it has ended', async () => {
    const { id } = await stuckOrder(1);
    shop.liveProvider.findError = new ProviderOutcomeUnknown();
    expect(await desk.look(id)).toMatchObject({
      answered: false,
      esims: [],
      actions: ['requery', 'mark_failed'],
    });
    await desk.reconcile(id, 'mark_failed');
    const path = (order: string) => `/internal/v1/orders/${order}/upstream`;
    expectProblem(await shop.office.admin.get(path(id)), 409, 'conflict');
    expectProblem(await shop.office.admin.get(path('ord_01KAEXAMPLE0000000000000000')), 404, 'not_found');
  });

  it('is not ended by a word that is older than the last work on it', async () => {
    const { id } = await stuckOrder(1);
    const findParts = shop.liveProvider.findParts.bind(shop.liveProvider);
    vi.spyOn(shop.liveProvider, 'findParts').mockImplementationOnce(async (request) => {
      const parts = await findParts(request);
      // A worker takes it up, places it and is done: all within the time of this answer.
      await desk.change(id, 'fence = fence + 1');
      return parts;
    });
    expectProblem(await desk.reconcile(id, 'mark_failed'), 409, 'conflict');
    expect(await shop.row(id)).toMatchObject({ status: 'processing' });
    expect((await desk.reconcile(id, 'mark_failed')).body.data).toMatchObject({ status: 'failed' });
  });
});
