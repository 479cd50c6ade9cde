import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type EsimAccessSimulator,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import type { TopupFaults } from '../../simulators/esim-access/topup-faults.js';
import { eventually } from '../harness/index.js';
import {
  callWire,
  lookOnWire,
  newTransactionId,
  orderOnWire,
  type WireAnswer,
  type WireFields,
} from './esim-access-wire.js';

const GB = 1_073_741_824;
const CODE = 'TOPUP_PDE1D7';
const FOREIGN = /^[0-9a-f]{32}$/;

let simulator: EsimAccessSimulator;
let esim: WireFields;
beforeEach(async () => {
  simulator = await startEsimAccessSimulator({ requestsPerSecond: null });
  esim = (await orderOnWire(simulator))[0]!;
});
afterEach(() => simulator.close());

function set(topups: Partial<TopupFaults> | null): void {
  simulator.control({ faults: { topups } });
}

function topUp(transactionId = newTransactionId(), fields: object = {}): Promise<WireAnswer> {
  const named = { esimTranNo: esim['esimTranNo'], packageCode: CODE, transactionId };
  return callWire(simulator, 'esim/topup', { ...named, ...fields });
}

async function entries(): Promise<readonly WireFields[]> {
  const { packageList } = await lookOnWire(simulator, esim['esimTranNo']);
  return packageList as readonly WireFields[];
}

function charged(): number {
  return simulator.state().topupsOfEsims[esim['esimTranNo'] as string] ?? 0;
}

describe('the simulator answers a top-up of eSIM Access', () => {
  it('with its own id in the answer and in the list (otherId), counted under the id that was sent', async () => {
    set({ otherId: true });
    const { obj } = await topUp('mine');
    expect(obj).toMatchObject({ transactionId: expect.stringMatching(FOREIGN), iccid: esim['iccid'] });
    expect((await entries())[1]).toMatchObject({ transactionId: obj?.['transactionId'], packageCode: CODE });
    expect([simulator.state().topups, charged()]).toEqual([{ mine: 1 }, 1]);
  });

  it('without an id in either (noId)', async () => {
    set({ noId: true });
    expect((await topUp()).obj).not.toHaveProperty('transactionId');
    expect((await entries())[1]).not.toHaveProperty('transactionId');
  });

  it.each([
    ['orderId', () => ({ packageCode: CODE, transactionId: esim['transactionId'] })],
    ['baseCodeWithoutId', () => ({ packageCode: 'PDE1D7' })],
  ] as const)('with our id, and lists it as %s', async (name, shown) => {
    set({ [name]: true });
    expect((await topUp('mine')).obj).toMatchObject({ transactionId: 'mine' });
    const [, entry] = await entries();
    expect(entry).toMatchObject(shown());
    expect(Object.hasOwn(entry!, 'transactionId')).toBe(name === 'orderId');
  });

  it('and shows its entry, volume and days later (lateEntry)', async () => {
    set({ lateEntry: 3_000 });
    expect((await topUp()).obj).toMatchObject({ totalVolume: 2 * GB });
    const { packageList, ...before } = await lookOnWire(simulator, esim['esimTranNo']);
    expect(packageList).toHaveLength(1);
    const { totalVolume, totalDuration, expiredTime } = esim;
    expect(before).toMatchObject({ totalVolume, totalDuration, expiredTime });
    await eventually('the entry is shown', async () => (await entries()).length === 2);
    expect(await lookOnWire(simulator, esim['esimTranNo'])).toMatchObject({ totalVolume: 2 * GB });
  });

  it('by a cut connection, applied all the same (lostAnswer), together with any other switch', async () => {
    set({ lostAnswer: 1, otherId: true, numberedEntry: true });
    await expect(topUp('mine')).rejects.toThrow(TypeError);
    expect(charged()).toBe(1);
    expect((await entries())[1]).toMatchObject({
      transactionId: expect.stringMatching(FOREIGN),
      topUpEsimTranNo: expect.stringMatching(/^\d{14}$/),
    });
    // What was refused was not applied: it does not use the switch up.
    set({ lostAnswer: 1 });
    expect((await topUp('mine', { amount: 1 })).errorCode).toBe('200006');
    await expect(topUp('mine')).rejects.toThrow(TypeError);
    expect([simulator.state().topups, charged()]).toEqual([{ mine: 2 }, 2]);
  });

  it('with 310402 when it is repeated and repeats are refused (refuseRepeats)', async () => {
    set({ refuseRepeats: true });
    expect((await topUp('mine')).success).toBe(true);
    expect((await topUp('mine')).errorCode).toBe('310402');
    expect(charged()).toBe(1);
  });

  it('as it named it then, also after all switches are put back', async () => {
    set({ noId: true });
    await topUp();
    set(null);
    await topUp('mine');
    expect((await entries()).map((entry) => entry['transactionId'])).toEqual([
      esim['transactionId'],
      undefined,
      'mine',
    ]);
  });
});
