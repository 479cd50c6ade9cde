import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  createTestDatabase,
  eventually,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestService,
  waitingForLocks,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem } from '../harness/expect-problem.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { BASE, placeTopup, topUp, TOPUP_1GB_7D, TOPUP_FAIL } from './topup-steps.js';

let database: TestDatabase;
let office: TestService;
let front: TestService;
let worker: TestService | null = null;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  database = await createTestDatabase();
  [office, front] = await Promise.all([
    startTestService({ role: 'admin', database }),
    startTestService({ role: 'api', database }),
  ]);
  api = front.partnerApi((await office.createPartner()).sandboxKey);
  device = new EsimDevice(api);
});

afterAll(async () => {
  await worker?.stop();
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

beforeEach(async () => {
  worker ??= await startTestService({ role: 'worker', database });
});

/** Keeps everything accepted from now on unprocessed. */
async function stopWorker(): Promise<void> {
  await worker?.stop();
  worker = null;
}

interface Sold {
  readonly esimId: string;
  readonly orderId: string;
}

async function untouchedEsim(): Promise<Sold> {
  const esimId = await issueEsim(api, BASE);
  return { esimId, orderId: (await device.read(esimId))['order_id'] as string };
}

const cancel = ({ orderId }: Sold): Promise<ApiAnswer> => api.post(`/v1/orders/${orderId}/cancel`);
const orderTopup = ({ esimId }: Sold): Promise<ApiAnswer> =>
  api.post('/v1/topups', { esim_id: esimId, package_id: TOPUP_1GB_7D });
const order = async ({ orderId }: Sold): Promise<Json> =>
  (await api.get(`/v1/orders/${orderId}`)).body.data as Json;
const topupsOf = async ({ esimId }: Sold): Promise<Json[]> =>
  (await api.get(`/v1/topups?esim_id=${esimId}`)).body.data as Json[];

describe('an order whose eSIM was topped up', () => {
  it('cannot be canceled when the top-up has completed, because its data cannot be taken back', async () => {
    const sold = await untouchedEsim();
    expect(await topUp(api, sold.esimId)).toMatchObject({ status: 'completed' });
    expectProblem(await cancel(sold), 409, 'order_not_cancelable');
    expect(await order(sold)).toMatchObject({ status: 'issued' });
  });

  it('cannot be canceled while the top-up is in progress', async () => {
    const sold = await untouchedEsim();
    await stopWorker();
    await placeTopup(api, { esim_id: sold.esimId, package_id: TOPUP_1GB_7D });
    expectProblem(await cancel(sold), 409, 'order_not_cancelable');
  });

  it('can be canceled when the top-up has failed', async () => {
    const sold = await untouchedEsim();
    expect(await topUp(api, sold.esimId, TOPUP_FAIL)).toMatchObject({ status: 'failed' });
    expect((await cancel(sold)).status).toBe(202);
    await eventually('it is canceled', async () => (await order(sold))['status'] === 'canceled');
  });
});

describe('an order that is being canceled', () => {
  it('accepts no top-up for its eSIMs', async () => {
    const sold = await untouchedEsim();
    await stopWorker();
    expect((await cancel(sold)).status).toBe(202);
    expectProblem(await orderTopup(sold), 409, 'esim_not_ready');
    expect(await topupsOf(sold)).toEqual([]);
  });
});

describe('a concurrent top-up and cancellation', () => {
  /** Queues both at the row lock of the order, in this order, and then releases it. */
  async function race(
    sold: Sold,
    first: (sold: Sold) => Promise<ApiAnswer>,
    second: (sold: Sold) => Promise<ApiAnswer>,
  ): Promise<readonly [ApiAnswer, ApiAnswer]> {
    const client = await database.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM orders WHERE id = $1 FOR UPDATE', [sold.orderId]);
      const answers = [first(sold)];
      await waiters(1);
      answers.push(second(sold));
      await waiters(2);
      await client.query('ROLLBACK');
      return [await answers[0]!, await answers[1]!];
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  async function waiters(count: number): Promise<void> {
    await eventually(`${count} wait for the order`, async () => (await waitingForLocks(database)) === count);
  }

  it('cancels and refuses the top-up when the cancellation is first', async () => {
    const sold = await untouchedEsim();
    await stopWorker();
    const [canceling, refused] = await race(sold, cancel, orderTopup);
    expect(canceling.status, canceling.text).toBe(202);
    expectProblem(refused, 409, 'esim_not_ready');
    expect(await order(sold)).toMatchObject({ status: 'canceling' });
    expect(await topupsOf(sold)).toEqual([]);
  });

  it('tops up and refuses the cancellation when the top-up is first', async () => {
    const sold = await untouchedEsim();
    await stopWorker();
    const [accepted, refused] = await race(sold, orderTopup, cancel);
    expect(accepted.status, accepted.text).toBe(202);
    expectProblem(refused, 409, 'order_not_cancelable');
    expect(await order(sold)).toMatchObject({ status: 'issued' });
    expect(await topupsOf(sold)).toMatchObject([{ id: accepted.body.data.id }]);
  });
});
