import { createHmac, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type EsimAccessSimulator,
  SIMULATOR_CREDENTIALS,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import { eventually, startReceiver } from '../harness/index.js';
import { differences } from './contract-check.js';
import { ANSWERS, CALLBACKS, ENVELOPE, NOTICE } from './esim-access-contract.js';
import { callWire, lookOnWire, newTransactionId, orderOnWire, type WireFields } from './esim-access-wire.js';

/** Answers have an offset without a colon, callbacks a Z. */
const ANSWER_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0000$/;
const CALLBACK_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const TOPUP = 'TOPUP_PDE1D7';
const DAILY = 'JP_DAILY';
const GB = 1_073_741_824;
const EID = '89049032'.padEnd(32, '0');

let simulator: EsimAccessSimulator;
beforeEach(async () => {
  simulator = await startEsimAccessSimulator({ requestsPerSecond: null });
});
afterEach(() => simulator.close());

async function check(operation: string, fields: object): Promise<void> {
  const answer = await callWire(simulator, operation, fields);
  expect(differences(answer, ENVELOPE, ANSWER_TIME), operation).toEqual([]);
  expect(differences(answer.obj, ANSWERS[operation]!, ANSWER_TIME), operation).toEqual([]);
}

function topUp(esim: WireFields, fields: object) {
  const named = { esimTranNo: esim['esimTranNo'], transactionId: newTransactionId() };
  return callWire(simulator, 'esim/topup', { ...named, ...fields });
}

describe('the simulator of eSIM Access', () => {
  it('answers every operation with the fields that are published or were recorded, and no others', async () => {
    const packageInfoList = [{ packageCode: DAILY, count: 1 }];
    const [esim] = await orderOnWire(simulator);
    const { esimTranNo } = esim!;
    const pager = { pageNum: 1, pageSize: 50 };
    await check('package/list', { type: 'BASE' });
    await check('esim/order', { transactionId: newTransactionId(), packageInfoList });
    await check('esim/topup', { esimTranNo, packageCode: TOPUP, transactionId: newTransactionId() });
    const window = { startTime: '2020-01-01T00:00:00Z', endTime: '2100-01-01T00:00:00Z' };
    await check('esim/query', { ...window, pager });
    await check('esim/usage/query', { esimTranNoList: [esimTranNo] });
    await check('balance/query', {});
    await check('location/list', {});
    await check('esim/sendSms', { esimTranNo, message: 'hello' });
    for (const act of ['suspend', 'unsuspend', 'revoke']) await check(`esim/${act}`, { esimTranNo });
    const [unused] = await orderOnWire(simulator);
    await check('esim/cancel', { esimTranNo: unused!['esimTranNo'] });
  });

  it('stays within them with the switches for sparse and odd fields on', async () => {
    const [esim] = await orderOnWire(simulator);
    simulator.control({ faults: { nullUsageTimes: true, emptyFupPolicy: true, ipExport: 'NL/FR' } });
    const { esimTranNo } = esim!;
    await check('esim/query', { esimTranNo, pager: { pageNum: 1, pageSize: 5 } });
    await check('esim/usage/query', { esimTranNoList: [esimTranNo] });
    expect(await lookOnWire(simulator, esimTranNo)).toMatchObject({ fupPolicy: '', ipExport: 'NL/FR' });
    const usage = await callWire(simulator, 'esim/usage/query', { esimTranNoList: [esimTranNo] });
    expect(usage.obj?.['esimUsageList']).toMatchObject([{ dataUsage: 0, lastUpdateTime: null }]);
  });

  it('sends callbacks with the published fields, and times that end in Z', async () => {
    const receiver = await startReceiver();
    try {
      await check('webhook/save', { webhook: receiver.url });
      const [esim] = await orderOnWire(simulator);
      const esimTranNo = esim!['esimTranNo'] as string;
      const installed = { smdpStatus: 'ENABLED', esimStatus: 'IN_USE', eid: EID };
      simulator.control({ esim: { esimTranNo, ...installed, orderUsage: 700_000_000, usageReadAtMs: null } });
      const types = Object.keys(CALLBACKS);
      await eventually('each callback has come', () => receiver.received.length >= types.length);
      const notices = receiver.received.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
      expect(new Set(notices.map((notice) => notice['notifyType']))).toEqual(new Set(types));
      for (const notice of notices) {
        expect(differences(notice, NOTICE, CALLBACK_TIME)).toEqual([]);
        const content = CALLBACKS[notice['notifyType'] as string]!;
        expect(differences(notice['content'], content, CALLBACK_TIME)).toEqual([]);
      }
    } finally {
      await receiver.close();
    }
  });

  it('shows a daily package as one was recorded live', async () => {
    const [esim] = await orderOnWire(simulator, { packageCode: DAILY });
    expect(esim).toMatchObject({
      ...{ dataType: 2, totalDuration: 1, supportTopUpType: 3, fupPolicy: '1 Mbps' },
      packageList: [{ packageCode: DAILY, duration: 1, transactionId: esim!['transactionId'] }],
    });
  });

  it('sells so many days of a daily package as periodNum says', async () => {
    const before = simulator.state().balance;
    const [esim] = await orderOnWire(simulator, { packageCode: DAILY, periodNum: 5 });
    expect(esim).toMatchObject({ totalDuration: 5, packageList: [{ duration: 5 }] });
    expect(before - simulator.state().balance).toBe(5 * 8_000);
  });

  it.each([
    ['a slug', { packageCode: 'DE_1_7' }],
    ['an amount as text', { packageCode: TOPUP, amount: '6000' }],
    ['an amount as a number', { packageCode: TOPUP, amount: 6_000 }],
  ])('takes %s in a top-up', async (_what, fields) => {
    const [esim] = await orderOnWire(simulator, { packageCode: 'DE_1_7' });
    expect((await topUp(esim!, fields)).obj).toMatchObject({ totalVolume: 2 * GB });
    expect((await topUp(esim!, { ...fields, amount: '6001' })).errorCode).toBe('200006');
  });

  it('takes an empty esimTranNo beside an ICCID', async () => {
    const [esim] = await orderOnWire(simulator);
    const { iccid } = esim!;
    expect((await topUp(esim!, { esimTranNo: '', iccid, packageCode: TOPUP })).obj).toMatchObject({ iccid });
  });

  it('takes a signature in upper case as in lower, and none, but no wrong one', async () => {
    const id = randomUUID();
    const timestamp = String(Date.now());
    const { accessCode, secretKey } = SIMULATOR_CREDENTIALS;
    const signature = createHmac('sha256', secretKey)
      .update(`${timestamp}${id}${accessCode}{}`)
      .digest('hex');
    const call = (given: string) =>
      callWire(
        simulator,
        'balance/query',
        {},
        { 'RT-RequestID': id, 'RT-Timestamp': timestamp, 'RT-Signature': given },
      );
    expect((await call(signature)).success).toBe(true);
    expect((await call(signature.toUpperCase())).success).toBe(true);
    expect((await callWire(simulator, 'balance/query', {})).success).toBe(true);
    expect(String((await call(signature.replaceAll(/[0-7]/g, '8'))).errorCode)).toBe('101003');
    expect((await callWire(simulator, 'balance/query', {}, { 'RT-AccessCode': 'x' })).success).not.toBe(true);
  });
});
