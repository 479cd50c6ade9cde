import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { expectBooksInOrder } from './books.js';
import { HeldNotes } from './held-notes.js';
import { buy, type Buyer, cancel, esimIdsOf, FAST, LiveShop, order, settled, topUp } from './shop.js';
import { TableLock } from './table-lock.js';
import { ZenditUpstream } from './zendit-upstream.js';

/** As in production, the read lag is at least the timeout. */
const TIMING = { LEASE_MS: '1500', PROVIDER_TIMEOUT_MS: '6000', PROVIDER_READ_LAG_MS: '6000' };

let upstream: ZenditUpstream;
let database: TestDatabase;
let api: TestService;
let shop: LiveShop;
let buyer: Buyer;
let frozen: RoleChild;
let awake: RoleChild | null = null;
let env: Record<string, string>;

beforeAll(async () => {
  [upstream, database] = await Promise.all([ZenditUpstream.start(), createTestDatabase()]);
  env = { ...FAST, ...TIMING, ...upstream.settings(upstream.url) };
  const [office, receiver] = await Promise.all([
    startTestService({ role: 'admin', database, env }),
    startReceiver(),
  ]);
  [api, frozen] = await Promise.all([
    startTestService({ role: 'api', database, env }),
    RoleChild.start({ role: 'worker', database, env }),
  ]);
  shop = new LiveShop(database, office, receiver, [upstream], (key) => api.partnerApi(key));
  await shop.catalogRead();
  buyer = await shop.buyer(100_000);
});

afterAll(async () => {
  frozen.thaw();
  await Promise.all([frozen.kill(), awake?.kill()]);
  await api.stop();
  await shop.close();
});

/** Zendit is queried again only after two seconds. This makes the waiting orders and top-ups due at once. */
async function soon<T>(work: Promise<T>): Promise<T> {
  const hurry = (table: string): string =>
    `UPDATE ${table} SET next_attempt_at = now() WHERE next_attempt_at > now() AND lease_until IS NULL`;
  const ring = () => database.pool.query(`${hurry('orders')}; ${hurry('topups')}`).catch(() => undefined);
  const bell = setInterval(() => void ring(), 100);
  try {
    return await work;
  } finally {
    clearInterval(bell);
  }
}

describe('a worker that freezes between recording a placement and calling the provider', () => {
  it('sends nothing when it wakes up, because another worker has bought it once in the meantime', async () => {
    const [esimId] = esimIdsOf(await soon(buy(buyer, upstream.packageId)));
    const notes = await HeldNotes.hold(database);
    const jobs = [
      await order(buyer, upstream.packageId),
      await topUp(buyer, esimId!, upstream.topupPackageId),
    ];
    await notes.waiters(jobs.length);
    frozen.freeze();
    await notes.release();
    const before = upstream.arrivals();

    awake = await RoleChild.start({ role: 'worker', database, env });
    const ends = await soon(Promise.all(jobs.map((job) => settled(buyer, job))));
    expect(ends.map((end) => end['status'] as string)).toEqual(['issued', 'completed']);
    expect(upstream.arrivals() - before).toBe(jobs.length);
    await awake.kill();

    frozen.thaw();
    // The thawed worker reads the buffered results of its placement records long before it places this new order.
    await soon(buy(buyer, upstream.packageId));
    expect(upstream.arrivals() - before).toBe(jobs.length + 1);
    expect(upstream.repeats()).toBe(0);
    await expectBooksInOrder(shop);
  });
});

describe('a worker that freezes between claiming a cancellation and calling the provider', () => {
  /** The statement that the worker runs between the claim and the call, as shown by PostgreSQL. */
  const ESIMS_OF_ORDER = 'SELECT "EsimEntity"%';

  it('cancels nothing when it wakes up, because support has ended the cancellation in the meantime', async () => {
    const bought = await soon(buy(buyer, upstream.packageId));
    const id = bought['id'] as string;
    const reference = await shop.referenceOf(id);
    frozen.freeze();
    await cancel(buyer, bought);
    const esims = await TableLock.take(database, 'esims');
    frozen.thaw();
    await esims.waitsFor(ESIMS_OF_ORDER);
    frozen.freeze();
    await esims.release();

    await eventually('support has ended it', async () => {
      const action = { action: 'mark_issued', note: 'asked Zendit: not refunded' };
      const answer = await shop.office.admin.post(`/internal/v1/orders/${id}/reconcile`, action);
      return answer.status === 200;
    });

    frozen.thaw();
    // The thawed worker reads the buffered eSIM rows long before it places this new order.
    await soon(buy(buyer, upstream.packageId));
    expect(upstream.simulator.state().purchases[`${reference}-1`]).toMatchObject({
      status: 'DONE',
      refund: null,
    });
    expect(await settled(buyer, bought)).toMatchObject({ status: 'issued' });
    await expectBooksInOrder(shop);
  });
});
