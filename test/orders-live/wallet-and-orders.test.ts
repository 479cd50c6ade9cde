import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Transactions } from '../../src/infra/database/index.js';
import { OrderJobsRepository } from '../../src/orders/order-jobs.repository.js';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import { Wallet } from '../../src/wallet/index.js';
import { eventually, startTestService } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, PACKAGE, place, PRICE, statement } from './live-shop.js';
import { OUT_OF_STOCK } from './stub-wholesaler.js';

const COST = 250;
const MARGIN_BPS = 2_001;
/** 250 cents plus 20.01 %, rounded up. */
const WITH_MARGIN = 301;
const IN_USE = { code: 'provider_rejected', reason: 'One is in use.' } as const;

let shop: LiveShop;

// The first tests have no worker. The test about a dead worker starts one for all later tests.
beforeAll(async () => {
  shop = await LiveShop.open();
});

afterAll(() => shop.close());

async function buyerWith(list: object | null): Promise<LiveBuyer> {
  const buyer = await shop.buyer(2 * PRICE);
  if (list === null) return buyer;
  const answer = await shop.office.admin.call('PUT', `/internal/v1/partners/${buyer.id}/price-list`, {
    body: list,
  });
  expect(answer.status, answer.text).toBe(200);
  return buyer;
}

const usd = (amount: number) => ({ amount, currency: 'USD' });
const own = (price: object, margin_bps: number | null = null) => ({
  margin_bps,
  prices: [{ package_id: PACKAGE, price }],
});

describe('the price of a live order', () => {
  beforeAll(() =>
    shop.database.pool.query(`UPDATE packages SET cost_micros = $1 WHERE mode = 'live'`, [COST * 10_000]),
  );

  it.each<[string, object | null, number]>([
    ['the catalog price without a price list', null, PRICE],
    ['the catalog price with an empty price list', {}, PRICE],
    ["the cost plus the partner's margin", { margin_bps: MARGIN_BPS }, WITH_MARGIN],
    ["the list's own price, whatever the margin", own(usd(299), MARGIN_BPS), 299],
    ['zero with a list price of 0', own(usd(0)), 0],
    [
      'the catalog price when the list has other packages only',
      { prices: [{ package_id: 'pkg_x', price: usd(1) }] },
      PRICE,
    ],
  ])('is %s, and the catalog shows it', async (_what, list, price) => {
    const buyer = await buyerWith(list);
    const shown = (await buyer.live.get(`/v1/catalog/${PACKAGE}`)).body.data;
    expect(shown.price).toEqual(usd(price));
    const atMost = (amount: number) => ({ package_id: PACKAGE, max_unit_price: usd(amount) });
    const order = await buyer.live.post('/v1/orders', atMost(price));
    expect(order.status, order.text).toBe(202);
    expect(order.body.data).toMatchObject({ unit_price: usd(price), total: usd(price) });
    expect(await balance(buyer)).toEqual({ posted: 2 * PRICE, held: price, available: 2 * PRICE - price });
    if (price === 0) return;
    const refused = await buyer.live.post('/v1/orders', atMost(price - 1));
    expect([refused.status, refused.body.code]).toEqual([409, 'price_changed']);
  });

  it("has the currency of the partner's own price, and a limit in another currency refuses the order", async () => {
    const buyer = await buyerWith(own({ amount: 299, currency: 'EUR' }));
    const limit = { package_id: PACKAGE, max_unit_price: usd(PRICE) };
    const refused = await buyer.live.post('/v1/orders', limit);
    expect([refused.status, refused.body.code]).toEqual([409, 'price_changed']);
    const unpaid = await buyer.live.post('/v1/orders', { package_id: PACKAGE });
    expect([unpaid.status, unpaid.body.code]).toEqual([402, 'insufficient_balance']);
  });
});

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

  // A refusal is as final as an acceptance (D18), even if money has arrived in the meantime.
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
  await shop.stopWorker();
});

/** Simulates a worker that died after its claim: the placement may have been sent, and the lease has expired. */
async function leaveBehind(orderId: string): Promise<string> {
  const { rows } = await shop.database.pool.query<{ provider_reference: string }>(
    `UPDATE orders SET status = 'processing', fence = 1, upstream_attempts = 1, upstream_placed_at = now(),
       lease_until = now() WHERE id = $1 RETURNING provider_reference`,
    [orderId],
  );
  return rows[0]!.provider_reference;
}

it('does not place again under an expired lease, even if nobody has taken the order yet', async () => {
  const queue = shop.api.process.api!.nest.get(OrderJobsRepository, { strict: false });
  const { id } = await place(await shop.buyer(PRICE));
  await leaveBehind(id as string);
  const lease = { id: id as string, fence: 1 };
  const note = [{ lease, readLagMs: 0 }];
  const placedAt = (await shop.row(lease.id))['upstream_placed_at'] as Date;
  expect(await queue.markPlaced(note)).toEqual([null]);
  expect((await shop.row(lease.id))['upstream_placed_at']).toEqual(placedAt);
  // A late heartbeat must not revive the lease, because support may have acted after its end.
  await queue.renew([lease]);
  expect(await queue.markPlaced(note)).toEqual([null]);
  const live = `UPDATE orders SET lease_until = now() + interval '1 minute' WHERE id = $1`;
  await shop.database.pool.query(live, [id]);
  await queue.renew([lease]);
  expect(await queue.markPlaced(note)).toMatchObject([{ waitMs: 0 }]);
  await leaveBehind(lease.id);
});

it('looks an order up by reference before it places anything that a dead worker may have placed', async () => {
  const buyer = await shop.buyer(2 * PRICE);
  const [placed, lost] = [await place(buyer), await place(buyer)];
  const placedReference = await leaveBehind(placed['id'] as string);
  const lostReference = await leaveBehind(lost['id'] as string);
  shop.liveProvider.provision({ reference: placedReference, quantity: 1 });
  await shop.startWorker();
  for (const { id } of [placed, lost]) {
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
  }
  expect(shop.liveProvider.placementsOf(placedReference)).toEqual([]);
  expect(shop.liveProvider.placementsOf(lostReference)).toEqual(['again']);
  await expectBooksToAddUp(shop.database);
});

describe('a live order', () => {
  it('is charged for its issued eSIMs, with the reference of the order, and placed once', async () => {
    const buyer = await shop.buyer(10 * PRICE);
    const { id } = await place(buyer, 2, { reference: 'booking-1' });
    const order = await shop.settled(buyer, id as string);
    expect(order).toMatchObject({ mode: 'live', status: 'issued', quantity_issued: 2 });
    expect(await balance(buyer)).toEqual({ posted: 8 * PRICE, held: 0, available: 8 * PRICE });
    const { data } = (await buyer.live.get('/v1/transactions')).body;
    expect(data[0]).toMatchObject({
      type: 'charge',
      amount: { amount: -2 * PRICE, currency: 'USD' },
      balance_after: { amount: 8 * PRICE, currency: 'USD' },
      order_id: id,
      topup_id: null,
      reference: 'booking-1',
    });
    const row = await shop.row(id as string);
    expect(row).toMatchObject({ provider: 'stub', upstream_package_id: 'UP-1', unit_cost_micros: '2500000' });
    expect(shop.liveProvider.placementsOf(row['provider_reference'] as string)).toEqual(['first']);
    await expectBooksToAddUp(shop.database);
  });

  it('is charged only for the issued part', async () => {
    const buyer = await shop.buyer(5 * PRICE);
    shop.liveProvider.script = [(order) => shop.liveProvider.provision(order, 3)];
    const order = await shop.settled(buyer, (await place(buyer, 5))['id'] as string);
    expect(order).toMatchObject({
      status: 'partially_issued',
      quantity_issued: 3,
      refunded: { amount: 2 * PRICE, currency: 'USD' },
    });
    expect(await balance(buyer)).toEqual({ posted: 2 * PRICE, held: 0, available: 2 * PRICE });
    expect(await statement(buyer)).toEqual([
      ['charge', -3 * PRICE],
      ['deposit', 5 * PRICE],
    ]);
    await expectBooksToAddUp(shop.database);
  });

  it.each([
    ['rejects it', { state: 'rejected', failure: OUT_OF_STOCK }],
    ['ends it without an eSIM', { state: 'provisioned', profiles: [], shortfall: OUT_OF_STOCK }],
  ] as const)('fails and is released without a charge when the provider %s', async (_what, state) => {
    const buyer = await shop.buyer(PRICE);
    shop.liveProvider.script = [() => state];
    const order = await shop.settled(buyer, (await place(buyer))['id'] as string);
    expect(order).toMatchObject({ status: 'failed', failure: { code: 'package_unavailable' } });
    expect(await balance(buyer)).toEqual({ posted: PRICE, held: 0, available: PRICE });
    expect(await statement(buyer)).toEqual([['deposit', PRICE]]);
    const events = (await readFeed(buyer.live)).map((event) => event['type'] as string);
    expect(events).toEqual(['order.failed']);
    await expectBooksToAddUp(shop.database);
  });

  it('is issued from an empty wallet if the package is free', async () => {
    await shop.database.pool.query(`UPDATE packages SET price_amount = 0 WHERE mode = 'live' AND id = $1`, [
      PACKAGE,
    ]);
    try {
      const buyer = await shop.buyer(0);
      const { id } = await place(buyer);
      expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
      expect((await buyer.live.get('/v1/transactions')).body.data).toEqual([]);
      await expectBooksToAddUp(shop.database);
    } finally {
      await shop.database.pool.query(
        `UPDATE packages SET price_amount = $2 WHERE mode = 'live' AND id = $1`,
        [PACKAGE, PRICE],
      );
    }
  });

  it('returns 503 and leaves nothing behind when its provider is not connected', async () => {
    const buyer = await shop.buyer(PRICE);
    await shop.database.pool.query(`UPDATE package_sources SET provider = 'gone'`);
    const idempotencyKey = 'retry-after-503';
    const body = { package_id: PACKAGE };
    const refused = await buyer.live.post('/v1/orders', body, { idempotencyKey });
    expect([refused.status, refused.body.code]).toEqual([503, 'service_unavailable']);
    expect(await balance(buyer)).toMatchObject({ held: 0 });
    await shop.database.pool.query(`UPDATE package_sources SET provider = 'stub'`);
    const accepted = await buyer.live.post('/v1/orders', body, { idempotencyKey });
    expect(accepted.status, accepted.text).toBe(202);
    // An unfinished order would use up the provider script of the next test.
    await shop.settled(buyer, accepted.body.data.id as string);
  });
});

describe('placing an order provider', () => {
  it('treats a placement as the first as long as no call can have been sent', async () => {
    const buyer = await shop.buyer(PRICE);
    const down = (): never => {
      throw new ProviderUnavailable(50);
    };
    shop.liveProvider.script = [down, down];
    const { id } = await place(buyer);
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
    const { provider_reference } = await shop.row(id as string);
    const placements = shop.liveProvider.placementsOf(provider_reference as string);
    expect(placements).toEqual(['first', 'first', 'first']);
  });

  it('finds an order that was provisioned without a response, and does not buy it again', async () => {
    const buyer = await shop.buyer(PRICE);
    shop.liveProvider.script = [
      (order) => {
        shop.liveProvider.provision(order);
        throw new ProviderOutcomeUnknown();
      },
    ];
    const { id } = await place(buyer);
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
    const { provider_reference } = await shop.row(id as string);
    expect(shop.liveProvider.placementsOf(provider_reference as string)).toEqual(['first']);
    await expectBooksToAddUp(shop.database);
  });

  it('waits for the read lag before it places again an order that it did not find', async () => {
    const buyer = await shop.buyer(PRICE);
    shop.liveProvider.readLagMs = 3_000;
    try {
      const { finds } = shop.liveProvider;
      const placedAtMs: number[] = [];
      shop.liveProvider.script = [
        () => {
          placedAtMs.push(performance.now());
          throw new ProviderOutcomeUnknown();
        },
        (order) => {
          placedAtMs.push(performance.now());
          return shop.liveProvider.provision(order);
        },
      ];
      const { id } = await place(buyer);
      expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
      const { provider_reference } = await shop.row(id as string);
      expect(shop.liveProvider.placementsOf(provider_reference as string)).toEqual(['first', 'again']);
      expect(shop.liveProvider.finds).toBeGreaterThan(finds);
      // Without the read lag it would be one second.
      expect(placedAtMs[1]! - placedAtMs[0]!).toBeGreaterThan(2_900);
    } finally {
      shop.liveProvider.readLagMs = 0;
    }
  });
});

describe('the wallet', () => {
  const inTx = <T>(
    work: (wallet: Wallet, tx: Parameters<Parameters<Transactions['run']>[0]>[0]) => Promise<T>,
  ) => {
    const { nest } = shop.api.process.api!;
    const wallet = nest.get(Wallet, { strict: false });
    return nest.get(Transactions, { strict: false }).run((tx) => work(wallet, tx));
  };

  it('settles a hold once, even when it is called repeatedly and concurrently', async () => {
    const buyer = await shop.buyer(1_000);
    const subject = { topupId: `top_once` };
    const [mode, money] = ['live', { amount: 700, currency: 'USD' }] as const;
    await inTx((wallet, tx) => wallet.hold(tx, { partnerId: buyer.id, mode, money, subject }));
    const settle = (capturedAmount: number): Promise<void> =>
      inTx((wallet, tx) => wallet.settle(tx, [{ mode, subject, capturedAmount }]));
    await Promise.all([settle(600), settle(600), settle(600), settle(600)]);
    await settle(700);
    expect(await balance(buyer)).toEqual({ posted: 400, held: 0, available: 400 });
    expect(await statement(buyer)).toEqual([
      ['charge', -600],
      ['deposit', 1_000],
    ]);
    const refund = (amount: number): Promise<void> =>
      inTx((wallet, tx) => wallet.refund(tx, { mode, subject, amount }));
    const refunds = await Promise.allSettled([refund(400), refund(400), refund(200)]);
    expect(refunds.filter((one) => one.status === 'fulfilled')).toHaveLength(2);
    await expect(refund(1)).rejects.toThrow('more would be refunded');
    expect(await balance(buyer)).toMatchObject({ posted: 1_000 });
    await expectBooksToAddUp(shop.database);
  });

  it('captures only held money, and refuses a second hold for the same purchase', async () => {
    const buyer = await shop.buyer(1_000);
    const [mode, money] = ['live', { amount: 100, currency: 'USD' }] as const;
    const unheld = { orderId: 'ord_unheld' };
    await expect(
      inTx((wallet, tx) => wallet.settle(tx, [{ mode, subject: unheld, capturedAmount: 1 }])),
    ).rejects.toThrow('nothing was held');
    const hold = { partnerId: buyer.id, mode, money, subject: { topupId: 'top_twice' } };
    await inTx((wallet, tx) => wallet.hold(tx, hold));
    await expect(inTx((wallet, tx) => wallet.hold(tx, hold))).rejects.toThrow('wallet_holds_topup');
    expect(await balance(buyer)).toMatchObject({ held: 100 });
  });

  it('is not used by Sandbox: no wallet, hold or transaction, and a constant balance', async () => {
    const partner = await shop.office.createPartner();
    const sandbox = shop.api.partnerApi(partner.sandboxKey);
    const before = (await sandbox.get('/v1/balance')).body.data;
    const placed = (await sandbox.post('/v1/orders', { package_id: 'pkg_test_partial', quantity: 5 })).body;
    await shop.settled({ id: partner.id, live: sandbox }, placed.data.id as string);
    expect((await sandbox.get('/v1/balance')).body.data).toEqual(before);
    expect((await sandbox.get('/v1/transactions')).body.data).toEqual([]);
    const { rows } = await shop.database.pool.query('SELECT 1 FROM wallets WHERE partner_id = $1', [
      partner.id,
    ]);
    expect(rows).toEqual([]);
    await expectBooksToAddUp(shop.database);
  });
});

describe('the recorded time of the last placement', () => {
  it('is not set by a cancellation, which places nothing', async () => {
    const buyer = await shop.buyer(PRICE);
    const id = (await place(buyer))['id'] as string;
    await shop.settled(buyer, id);
    // Simulates an order that support has issued without a placement.
    await shop.database.pool.query('UPDATE orders SET upstream_placed_at = NULL WHERE id = $1', [id]);
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'canceled' });
    expect(await shop.row(id)).toMatchObject({ upstream_placed_at: null });
  });

  it('is cleared when the worker cannot call the provider, so that the next attempt places the order first', async () => {
    const buyer = await shop.buyer(PRICE);
    await shop.stopWorker();
    const id = (await place(buyer))['id'] as string;
    await shop.database.pool.query(`UPDATE orders SET provider = 'absent' WHERE id = $1`, [id]);
    await shop.startWorker();
    const row = await eventually('the attempt is given up', async () => {
      const one: Json = await shop.row(id);
      return one['last_error'] === null ? null : one;
    });
    expect(row).toMatchObject({ status: 'processing', upstream_placed_at: null });
    await shop.database.pool.query(`UPDATE orders SET provider = 'stub' WHERE id = $1`, [id]);
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'issued' });
    expect(shop.liveProvider.placementsOf(row['provider_reference'] as string)).toEqual(['first']);
  });
});

describe('a surplus profile', () => {
  const alertsAbout = async (id: string): Promise<Json[]> =>
    (await shop.office.admin.get(`/internal/v1/alerts?subject_id=${id}`)).body.data as Json[];

  it('is not issued: the ordered number is charged, and an alert names the rest', async () => {
    shop.liveProvider.script = [(order) => shop.liveProvider.provision(order, 3)];
    const buyer = await shop.buyer(2 * PRICE);
    const { id } = await place(buyer, 2);
    const order = await shop.settled(buyer, id as string);
    expect(order).toMatchObject({ status: 'issued', quantity_issued: 2, refunded: { amount: 0 } });
    expect(order['esims']).toHaveLength(2);
    expect((await statement(buyer))[0]).toEqual(['charge', -2 * PRICE]);
    expect(await balance(buyer)).toEqual({ posted: 0, held: 0, available: 0 });
    expect(await alertsAbout(id as string)).toMatchObject([
      {
        type: 'order.needs_review',
        partner_id: buyer.id,
        details: { provider: 'stub', quantity: 2, provisioned: 3 },
      },
    ]);
    await expectBooksToAddUp(shop.database);
  });
});

describe('cancellation', () => {
  let buyer: LiveBuyer;

  beforeEach(async () => {
    buyer = await shop.buyer(2 * PRICE);
    shop.liveProvider.cancelState = () => ({ state: 'canceled' });
  });

  async function issuedOrder(quantity: number): Promise<string> {
    const { id } = await place(buyer, quantity);
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
    return id as string;
  }

  async function cancel(id: string): Promise<void> {
    const answer = await buyer.live.post(`/v1/orders/${id}/cancel`);
    expect(answer.status, answer.text).toBe(202);
  }

  /** The provider's ids of the order's eSIMs. */
  async function upstreamIds(orderId: string): Promise<string[]> {
    const { rows } = await shop.database.pool.query<{ provider_esim_id: string }>(
      'SELECT provider_esim_id FROM esims WHERE order_id = $1 ORDER BY id',
      [orderId],
    );
    return rows.map((row) => row.provider_esim_id);
  }

  async function change(esim: string, assignment: string): Promise<void> {
    await shop.database.pool.query(`UPDATE esims SET ${assignment} WHERE provider_esim_id = $1`, [esim]);
  }

  /** Refunds in the ledger, in cents. */
  async function refunds(): Promise<number[]> {
    return (await statement(buyer)).filter(([type]) => type === 'refund').map(([, amount]) => amount);
  }

  const statuses = (order: Json): string[] =>
    (order['esims'] as { status: string }[]).map((esim) => esim.status).sort();

  describe('a cancellation', () => {
    it('refunds the charge as a separate transaction', async () => {
      const id = await issuedOrder(2);
      await cancel(id);
      const order = await shop.settled(buyer, id);
      expect(order).toMatchObject({ status: 'canceled', refunded: { amount: 2 * PRICE, currency: 'USD' } });
      expect(await balance(buyer)).toEqual({ posted: 2 * PRICE, held: 0, available: 2 * PRICE });
      expect(await statement(buyer)).toEqual([
        ['refund', 2 * PRICE],
        ['charge', -2 * PRICE],
        ['deposit', 2 * PRICE],
      ]);
      await expectBooksToAddUp(shop.database);
    });

    it('refunds only the canceled part, explains the rest, and can be requested again', async () => {
      buyer = await shop.buyer(3 * PRICE);
      const id = await issuedOrder(3);
      shop.liveProvider.cancelState = ({ esims }) => ({
        state: 'partly_canceled',
        canceledEsimIds: esims.slice(0, 2).map((esim) => esim.providerEsimId),
        failure: IN_USE,
      });
      await cancel(id);
      const partly = await shop.settled(buyer, id);
      expect(partly).toMatchObject({
        status: 'issued',
        cancel_failure: IN_USE,
        refunded: { amount: 2 * PRICE, currency: 'USD' },
      });
      expect(statuses(partly)).toEqual(['canceled', 'canceled', 'issued']);
      expect(await balance(buyer)).toMatchObject({ available: 2 * PRICE });
      await expectBooksToAddUp(shop.database);

      shop.liveProvider.cancelState = () => ({ state: 'canceled' });
      await cancel(id);
      const whole = await shop.settled(buyer, id);
      expect(whole).toMatchObject({ status: 'canceled', refunded: { amount: 3 * PRICE, currency: 'USD' } });
      expect(shop.liveProvider.cancels.at(-1)!.esims).toHaveLength(1);
      expect(await balance(buyer)).toMatchObject({ available: 3 * PRICE });
      await expectBooksToAddUp(shop.database);
    });

    it('moves no money when the provider refuses', async () => {
      const id = await issuedOrder(2);
      shop.liveProvider.cancelState = () => ({ state: 'refused', failure: IN_USE });
      await cancel(id);
      const order = await shop.settled(buyer, id);
      expect(order).toMatchObject({ status: 'issued', cancel_failure: IN_USE, refunded: { amount: 0 } });
      expect(await balance(buyer)).toMatchObject({ available: 0 });
      await expectBooksToAddUp(shop.database);
    });
  });

  describe('a cancellation whose first response was lost', () => {
    /** The provider does not respond until an eSIM was installed. Then it returns the result of the lost call. */
    async function loseAnswerAndInstall(orderId: string, esim: string): Promise<() => void> {
      let isInstalled = false;
      const { cancelState } = shop.liveProvider;
      shop.liveProvider.cancelState = (request) => {
        if (!isInstalled) throw new ProviderOutcomeUnknown();
        return cancelState(request);
      };
      const asked = shop.liveProvider.cancels.length;
      await cancel(orderId);
      await eventually('the upstream was asked', () => shop.liveProvider.cancels.length > asked);
      await change(esim, `profile_status = 'downloaded'`);
      return () => (isInstalled = true);
    }

    it('refunds the eSIMs that the call canceled, even if another eSIM was installed in the meantime', async () => {
      const id = await issuedOrder(2);
      const [gone, installed] = await upstreamIds(id);
      const canceledEsimIds = [gone!];
      shop.liveProvider.cancelState = () => ({ state: 'partly_canceled', canceledEsimIds, failure: IN_USE });
      const answerAgain = await loseAnswerAndInstall(id, installed!);
      answerAgain();
      const order = await shop.settled(buyer, id);
      expect(order).toMatchObject({ status: 'issued', cancel_failure: IN_USE, refunded: { amount: PRICE } });
      expect(statuses(order)).toEqual(['canceled', 'issued']);
      expect(await refunds()).toEqual([PRICE]);
      expect(await balance(buyer)).toMatchObject({ posted: PRICE, available: PRICE });
      await expectBooksToAddUp(shop.database);
    });

    it('refunds nothing and restores the order when the call canceled no eSIM', async () => {
      const id = await issuedOrder(1);
      const [installed] = await upstreamIds(id);
      shop.liveProvider.cancelState = () => ({ state: 'refused', failure: IN_USE });
      const answerAgain = await loseAnswerAndInstall(id, installed!);
      answerAgain();
      const order = await shop.settled(buyer, id);
      expect(order).toMatchObject({ status: 'issued', cancel_failure: IN_USE, refunded: { amount: 0 } });
      expect(await refunds()).toEqual([]);
      await expectBooksToAddUp(shop.database);
    });
  });

  describe('an order that had lost an eSIM earlier', () => {
    it('is refunded according to the ledger, without the eSIM that the provider revoked on its own', async () => {
      const id = await issuedOrder(2);
      const [revoked, left] = await upstreamIds(id);
      await change(revoked!, `status = 'canceled'`);
      await cancel(id);
      const order = await shop.settled(buyer, id);
      expect(order).toMatchObject({ status: 'canceled', refunded: { amount: PRICE, currency: 'USD' } });
      expect(shop.liveProvider.cancels.at(-1)!.esims.map((esim) => esim.providerEsimId)).toEqual([left]);
      expect(await refunds()).toEqual([PRICE]);
      expect(await balance(buyer)).toMatchObject({ available: PRICE });
      await expectBooksToAddUp(shop.database);
    });
  });
});

it('sells only what LIVE_PROVIDERS names in an API process without wholesaler credentials', async () => {
  const { database } = shop;
  const api = await startTestService({ role: 'api', database, env: { LIVE_PROVIDERS: 'zendit' } });
  try {
    const { id } = await shop.buyer(PRICE);
    const live = api.partnerApi(await shop.office.createKey(id, 'live'));
    const order = async (provider: string): Promise<number> => {
      await database.pool.query('UPDATE package_sources SET provider = $1', [provider]);
      return (await live.post('/v1/orders', { package_id: PACKAGE })).status;
    };
    expect(await order('esim_access')).toBe(503);
    expect(await order('zendit')).toBe(202);
  } finally {
    await api.stop();
  }
});
