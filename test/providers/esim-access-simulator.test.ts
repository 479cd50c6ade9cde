import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultCatalog } from '../../simulators/esim-access/catalog.js';
import type { EsimAccessSimulator } from '../../simulators/esim-access/simulator.js';
import { SIMULATOR_CREDENTIALS, startEsimAccessSimulator } from '../../simulators/esim-access/simulator.js';

const GB = 1_073_741_824;
const DAY_MS = 86_400_000;
const PASS = defaultCatalog().find(({ packageCode }) => packageCode === 'JP_DAILY')!;

let simulator: EsimAccessSimulator;

beforeEach(async () => {
  simulator = await startEsimAccessSimulator({ requestsPerSecond: null });
});
afterEach(() => simulator.close());

interface Answer {
  readonly success: boolean | 'false';
  readonly errorCode: string | null;
  readonly obj: Record<string, unknown>;
}

async function call(path: string, fields: object): Promise<Answer> {
  const response = await fetch(`${simulator.url}/api/v1/open/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'rt-accesscode': SIMULATOR_CREDENTIALS.accessCode },
    body: JSON.stringify(fields),
  });
  return (await response.json()) as Answer;
}

/** The answer's `obj`. @throws Error on a refusal */
async function done(path: string, fields: object): Promise<Record<string, unknown>> {
  const { success, errorCode, obj } = await call(path, fields);
  if (success !== true) throw new Error(`${path}: ${errorCode}`);
  return obj;
}

const refusal = async (path: string, fields: object) => (await call(path, fields)).errorCode;

type Line = { packageCode?: string; count?: number; price?: number; periodNum?: unknown };

const orderOf = (transactionId: string, line: Line, amount?: unknown) => ({
  transactionId,
  ...(amount === undefined ? {} : { amount }),
  packageInfoList: [{ packageCode: 'JP_DAILY', count: 1, ...line }],
});

async function esimsOf(orderNo: unknown): Promise<Record<string, unknown>[]> {
  const answer = await done('esim/query', { orderNo, pager: { pageNum: 1, pageSize: 50 } });
  return answer['esimList'] as Record<string, unknown>[];
}

/** Buys one eSIM. */
async function buy(line: Line, transactionId = `order-${Math.random()}`): Promise<Record<string, unknown>> {
  const { orderNo } = await done('esim/order', orderOf(transactionId, line));
  return (await esimsOf(orderNo))[0]!;
}

describe('a day pass at the simulator of eSIM Access', () => {
  it.each([
    ['one day without periodNum', undefined, 1],
    ['as many days as periodNum says', 7, 7],
    ['365 days at most', 365, 365],
    ['days given as text', '30', 30],
  ])('lasts %s, and costs count times days times the price', async (_, periodNum, days) => {
    const before = simulator.state().balance;
    const price = 2 * days * PASS.price;
    const answer = await done(
      'esim/order',
      orderOf('o-1', { count: 2, periodNum, price: PASS.price }, price),
    );
    expect(before - simulator.state().balance).toBe(price);
    const esims = await esimsOf(answer['orderNo']);
    expect(esims).toHaveLength(2);
    for (const esim of esims) expect(esim).toMatchObject({ dataType: 2, totalDuration: days });
  });

  it.each([0, 366, -1, 1.5, 'seven', true])('refuses periodNum %s with 200008', async (periodNum) => {
    const before = simulator.state();
    expect(await refusal('esim/order', orderOf('o-1', { periodNum }))).toBe('200008');
    expect(simulator.state()).toMatchObject({ balance: before.balance, esims: 0 });
  });

  it('refuses an amount for other days with 200006, and a price of several days with 200005', async () => {
    expect(await refusal('esim/order', orderOf('o-1', { periodNum: 7 }, PASS.price))).toBe('200006');
    expect(await refusal('esim/order', orderOf('o-1', { periodNum: 7, price: 7 * PASS.price }))).toBe(
      '200005',
    );
    expect(simulator.state().esims).toBe(0);
  });

  it.each([
    ['JP_DAILY_STOP', 7],
    ['DE_UNL_1', 7],
    ['PJP1D7', 7],
    ['PJP3D30', 30],
  ])('sells %s for seven days as %i days', async (packageCode, totalDuration) => {
    expect(await buy({ packageCode, periodNum: 7 })).toMatchObject({ totalDuration });
  });

  it('ignores periodNum for a total amount of data', async () => {
    const before = simulator.state().balance;
    const { price } = defaultCatalog().find(({ packageCode }) => packageCode === 'PJP3D30')!;
    expect(await buy({ packageCode: 'PJP3D30', periodNum: 7 })).toMatchObject({ totalVolume: 3 * GB });
    expect(before - simulator.state().balance).toBe(price);
  });

  it('returns the same order to a repeated transactionId, and changes no days', async () => {
    const first = await done('esim/order', orderOf('o-1', { periodNum: 7 }));
    const before = simulator.state().balance;
    expect(await done('esim/order', orderOf('o-1', { periodNum: 3 }))).toEqual(first);
    const esims = await esimsOf(first['orderNo']);
    expect(esims).toMatchObject([{ totalDuration: 7 }]);
    expect(simulator.state()).toMatchObject({ balance: before, purchases: { 'o-1': 1 }, repeated: ['o-1'] });
  });

  it.each([
    ['total', 7 * GB, 10 * GB],
    ['day', GB, GB],
  ] as const)(
    'shows the volume of passVolume %s before and after a top-up',
    async (passVolume, first, then) => {
      simulator.control({ faults: { passVolume } });
      const esim = await buy({ periodNum: 7 });
      expect(esim).toMatchObject({ totalVolume: first, totalDuration: 7 });
      const { esimTranNo } = esim;
      const before = simulator.state().balance;
      const named = { esimTranNo, packageCode: 'TOPUP_JP_DAILY', periodNum: '3' };
      expect(
        await refusal('esim/topup', { ...named, transactionId: 't-1', amount: String(PASS.price) }),
      ).toBe('200006');
      const amount = String(3 * PASS.price);
      const answer = await done('esim/topup', { ...named, transactionId: 't-1', amount });
      expect(answer).toMatchObject({ totalVolume: then, totalDuration: 10 });
      expect(before - simulator.state().balance).toBe(3 * PASS.price);
      const [after] = await esimsOf(esim['orderNo']);
      expect(after).toMatchObject({ totalVolume: then, totalDuration: 10 });
      const ends = (of: Record<string, unknown>) =>
        Date.parse(String(of['expiredTime']).replace('+0000', 'Z'));
      expect(ends(after!) - ends(esim)).toBe(3 * DAY_MS);
    },
  );

  it('takes only top-ups of days, and an eSIM with a total amount only top-ups of data', async () => {
    const topup = (esim: Record<string, unknown>, packageCode: string) =>
      refusal('esim/topup', { esimTranNo: esim['esimTranNo'], packageCode, transactionId: packageCode });
    const pass = await buy({});
    const total = await buy({ packageCode: 'PJP1D7' });
    expect(await topup(pass, 'TOPUP_PJP1D7')).toBe('310241');
    expect(await topup(total, 'TOPUP_JP_DAILY')).toBe('310241');
    expect(simulator.state().topups).toEqual({});
    const codesFor = async (packageCode: string) => {
      const { packageList } = await done('package/list', { type: 'TOPUP', packageCode });
      return (packageList as { packageCode: string }[]).map((each) => each.packageCode);
    };
    expect(await codesFor('JP_DAILY')).toEqual(['TOPUP_JP_DAILY', 'TOPUP_JP_DAILY_STOP']);
    expect(await codesFor('PJP1D7')).toEqual(['TOPUP_PJP1D7', 'TOPUP_PJP3D30', 'TOPUP_PJP10D30']);
  });
});
