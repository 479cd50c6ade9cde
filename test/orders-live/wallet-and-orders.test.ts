import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Transactions } from '../../src/infra/database/index.js';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import { Wallet } from '../../src/wallet/index.js';
import { readFeed } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, LiveShop, PACKAGE, place, PRICE, statement } from './live-shop.js';
import { OUT_OF_STOCK } from './stub-wholesaler.js';

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
});

afterAll(() => shop.close());

describe('a live order', () => {
  it('is charged for what it issued, with the reference of the order, and was placed once', async () => {
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

  it('that was issued in part is charged for that part only', async () => {
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

  it('of a free package is issued without any money', async () => {
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

  it('is answered 503 and leaves nothing when its provider is not connected', async () => {
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
    // Under way it would use up what the next test has its provider say.
    await shop.settled(buyer, accepted.body.data.id as string);
  });
});

describe('placing an order provider', () => {
  it('stays a first placement while calls certainly never left', async () => {
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

  it('finds what was provisioned without an answer, and does not buy it again', async () => {
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

  it('waits for the read lag before it places again what was not found', async () => {
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
      // Without the lag it would be a second.
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

  it('settles a hold once, however often and however concurrently it is asked', async () => {
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

  it('captures nothing that was never held, and takes no second hold for the same order', async () => {
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

  it('is untouched by Sandbox: no wallet, hold or transaction, and the constant balance', async () => {
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
