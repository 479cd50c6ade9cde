import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually } from '../harness/index.js';
import { PRICE, ScriptedShop } from './scripted-shop.js';
import type { Answer } from './scripted-upstream.js';
import { done, HeldAnswer, nothing, silence, StuckTopups } from './stuck-topups.js';
import { GB, topupEnded } from './topup-steps.js';

let shop: ScriptedShop;
let stuck: StuckTopups;

beforeAll(async () => {
  shop = await ScriptedShop.open(20 * PRICE);
  stuck = new StuckTopups(shop);
});

afterAll(() => shop.close());

describe('a worker and support', () => {
  it('do not both end it: while a worker asks the provider, its answer counts', async () => {
    const topup = await stuck.topup();
    const upstream = new HeldAnswer();
    shop.upstream.script(topup.reference, [upstream.answer(done), silence, silence]);
    await stuck.reconcile(topup, 'requery');
    await eventually('the worker is at it', () => upstream.isAsked);
    const calls = shop.upstream.callsFor(topup.reference).length;
    for (const action of ['mark_failed', 'mark_completed']) {
      expectProblem(await stuck.reconcile(topup, action), 409, 'conflict');
    }
    upstream.release();
    expect(await topupEnded(shop.live, topup.id)).toMatchObject({ status: 'completed' });
    expect(await stuck.charges(topup)).toEqual([-PRICE]);
    expect(shop.upstream.callsFor(topup.reference)).toHaveLength(calls);
  });

  it.each([
    ['mark_failed', nothing, { type: 'order.topup.failed', charged: [], added: 0 }],
    ['mark_completed', silence, { type: 'order.topup.completed', charged: [-PRICE], added: GB }],
  ])('do not both end it: what a worker without its lease hears after %s is void', async (...given) => {
    const [action, answer, { type, charged, added }] = given;
    const total = await stuck.totalBytes();
    const upstream = new HeldAnswer();
    const topup = await stuck.accepted([upstream.answer(done)]);
    await eventually('the worker is at it', () => upstream.isAsked);
    // As after a long pause of that worker: its lease has lapsed, and its heartbeat does not renew it.
    await shop.database.pool.query(
      `UPDATE topups SET lease_until = NULL, next_attempt_at = now() + interval '1 hour',
         upstream_placed_at = now() - interval '1 minute' WHERE id = $1`,
      [topup.id],
    );
    shop.upstream.script(topup.reference, [answer]);
    expect((await stuck.reconcile(topup, action)).status).toBe(200);
    upstream.release();
    // Whatever the worker does with its answer is done before the next top-up of this partner has ended.
    const next = await stuck.accepted([done]);
    await topupEnded(shop.live, next.id);
    expect(await stuck.events(topup)).toMatchObject([{ type }]);
    expect(await stuck.charges(topup)).toEqual(charged);
    expect(await stuck.totalBytes()).toBe(total + added + GB);
  });

  it.each([
    ['has placed it', 'upstream_placed_at = clock_timestamp()'],
    ['has taken it up', `lease_until = now() + interval '1 minute', fence = fence + 1`],
  ])('do not contradict each other: 409 when a worker %s while support asked', async (_what, change) => {
    const meanwhile: Answer = async () => {
      await shop.database.pool.query(`UPDATE topups SET ${change} WHERE id = $1`, [topup.id]);
      return null;
    };
    const topup = await stuck.topupThen(meanwhile);
    expectProblem(await stuck.reconcile(topup, 'mark_failed'), 409, 'conflict');
    expect(await shop.row(topup.id)).toMatchObject({ status: 'processing' });
  });

  it('settle it once when support settles it twice at the same moment', async () => {
    const topup = await stuck.topupThen(silence);
    const answers = await Promise.all(
      ['mark_completed', 'mark_failed'].map((each) => stuck.reconcile(topup, each)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const [winner] = answers.filter(({ status }) => status === 200);
    expect(await stuck.events(topup)).toMatchObject([{ type: `order.topup.${winner!.body.data.status}` }]);
    expect(await stuck.charges(topup)).toEqual(winner!.body.data.status === 'completed' ? [-PRICE] : []);
  });
});
