import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, LiveShop, PACKAGE, PRICE, statement } from './live-shop.js';

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open();
});

afterAll(() => shop.close());

it('accepts exactly ten of forty orders at once on a balance for ten, and charges each once', async () => {
  const buyer = await shop.buyer(10 * PRICE + PRICE - 1);
  const keys = Array.from({ length: 40 }, () => randomUUID());
  const buy = (idempotencyKey: string) =>
    buyer.live.post('/v1/orders', { package_id: PACKAGE }, { idempotencyKey });
  const answers = await Promise.all(keys.map(buy));
  const codes = answers.map((answer) => (answer.status === 202 ? '202' : (answer.body.code as string)));
  expect(codes.filter((code) => code === '202')).toHaveLength(10);
  expect(codes.filter((code) => code === 'insufficient_balance')).toHaveLength(30);
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([202, 402]));
  expect(await balance(buyer)).toEqual({ posted: 11 * PRICE - 1, held: 10 * PRICE, available: PRICE - 1 });

  // A refusal is as final as an acceptance (D18), also when the money has come meanwhile.
  await shop.deposit(buyer.id, 100 * PRICE, 'second-deposit');
  const replays = await Promise.all(keys.map(buy));
  expect(replays.map((answer) => answer.text)).toEqual(answers.map((answer) => answer.text));
  const { rows } = await shop.database.pool.query(
    'SELECT count(*)::int AS n FROM orders WHERE partner_id = $1',
    [buyer.id],
  );
  expect(rows[0]).toEqual({ n: 10 });

  await shop.startWorker();
  const accepted = answers.filter((answer) => answer.status === 202).map((answer) => answer.body.data.id);
  for (const id of accepted) {
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
  }
  expect(await balance(buyer)).toMatchObject({ posted: 101 * PRICE - 1, held: 0 });
  expect((await statement(buyer)).filter(([type]) => type === 'charge')).toHaveLength(10);
  await expectBooksToAddUp(shop.database);
});
