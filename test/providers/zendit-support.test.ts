import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SIMULATOR_API_KEY } from '../../simulators/zendit/simulator.js';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import type { ZenditProvider } from '../../src/providers/zendit/zendit-provider.js';
import { type AnsweringServer, startAnsweringServer, type WireAnswer } from './answering-server.js';
import { findCancelStatuses, findParts } from './support-conformance.js';
import { newOrder } from './zendit-suite.js';
import { ZenditBench } from './zendit-world.js';

const UNKNOWN: WireAnswer = { status: 404, json: { errorCode: 'NOT_FOUND', message: 'not found' } };
/** A 200 without a body. */
const SILENCE: WireAnswer = { status: 200, json: undefined };
/** Deadline for a missing response. As in production, one call may use all of it. */
const SILENCE_MS = 8_000;

let bench: ZenditBench;
let server: AnsweringServer;

beforeAll(async () => {
  bench = await ZenditBench.open();
});
afterEach(async () => {
  await bench.endTest();
  await server.close();
});
afterAll(() => bench.close());

const deadlineFor = (answer: WireAnswer | null): number => (answer === null ? SILENCE_MS : 20_000);

/** A Zendit without refunds. `answer` returns the purchase or the plans for a path. */
async function zendit(
  answer: (path: string) => WireAnswer | null,
  deadlineMs: number,
): Promise<ZenditProvider> {
  server = await startAnsweringServer((_method, path) => (path.endsWith('/refund') ? UNKNOWN : answer(path)));
  const limits = { timeoutMs: deadlineMs, deadlineMs };
  return bench.provider({ baseUrl: `${server.url}/v1`, apiKey: SIMULATOR_API_KEY, ...limits });
}

describe('an order with one malformed purchase, as shown to support', () => {
  const order = newOrder(3);
  const odd = `${order.reference}-3`;
  const ids = [`${order.reference}-1`, `${order.reference}-2`];

  function purchase(transactionId: string, status = 'DONE'): WireAnswer {
    const confirmation = {
      iccid: '8910300000001234567',
      smdpAddress: 'smdp.example.com',
      activationCode: `M${transactionId.at(-1)}`,
    };
    return { status: 200, json: { transactionId, status, confirmation } };
  }

  /** Every purchase is done, except that the odd one returns `answer`. */
  const withOdd = (answer: WireAnswer | null) =>
    zendit((path) => {
      const transactionId = path.split('/').at(-1)!;
      return transactionId === odd ? answer : purchase(transactionId);
    }, deadlineFor(answer));

  it.each([
    ['has an unknown status and counts as running', purchase(odd, 'REVERSED'), [1, 0]],
    [
      'runs with an unreadable error and counts as running',
      { status: 200, json: { transactionId: odd, status: 'IN_PROGRESS', error: 'none' } },
      [1, 0],
    ],
    [
      'is done without a profile and counts as unusable',
      { status: 200, json: { transactionId: odd, status: 'DONE', confirmation: null } },
      [0, 1],
    ],
    [
      'is done with a refund of unknown status and counts as running',
      { status: 200, json: { transactionId: odd, status: 'DONE', refund: { status: 'REVERSED' } } },
      [1, 0],
    ],
    [
      'is done with an empty refund and counts as unusable',
      { status: 200, json: { transactionId: odd, status: 'DONE', refund: { status: '' } } },
      [0, 1],
    ],
  ] as const)('still shows the other purchases when it %s', async (_what, answer, [running, unusable]) => {
    const parts = await findParts(await withOdd(answer), order);
    expect(parts).toMatchObject({ running, unusable, failure: null });
    expect(parts.profiles.map(({ providerEsimId }) => providerEsimId)).toEqual(ids);
  });

  it.each<[string, WireAnswer | null]>([
    ['gets an empty response', SILENCE],
    ['gets no response within the deadline', null],
    ['gets the response for another purchase', purchase('po_other-1')],
    ['gets a response that is not an object', { status: 200, json: [] }],
  ])('must be queried again when the malformed purchase %s', async (_what, answer) => {
    await expect(findParts(await withOdd(answer), order)).rejects.toBeInstanceOf(ProviderUnavailable);
  });

  it.each([
    ['gets a body', SILENCE],
    ['gets a response within the deadline', null],
  ])('has an unknown outcome only when no purchase %s', async (_what, answer) => {
    const silent = await zendit(() => answer, deadlineFor(answer));
    await expect(findParts(silent, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
  });
});

describe('a cancellation with one unreadable eSIM, as shown to support', () => {
  const issuedAt = new Date(Date.now() - 60_000);
  const [used, unread] = ['8910300000000000001', '8910300000000000002'];
  const request = {
    reference: 'po_cancel',
    quantity: 2,
    esims: [used, unread].map((iccid, i) => ({ providerEsimId: `po_cancel-${i + 1}`, iccid, issuedAt })),
  };
  const USED: WireAnswer = { status: 200, json: { firstInstalledAt: new Date().toISOString(), list: [] } };

  const withUnread = (answer: WireAnswer | null) =>
    zendit((path) => {
      const transactionId = path.split('/').at(-1)!;
      if (path.includes('/purchases/')) return { status: 200, json: { transactionId, status: 'DONE' } };
      return path.includes(unread) ? answer : USED;
    }, deadlineFor(answer));

  it('still shows which eSIM is in use when the other has an unknown plan status', async () => {
    const answer = { status: 200, json: { list: [{ status: 'SUSPENDED' }] } };
    const cancelStatuses = await findCancelStatuses(await withUnread(answer), request);
    expect(cancelStatuses.map(({ cancelStatus }) => cancelStatus)).toEqual(['in_use', 'unknown']);
  });

  it.each([
    ['a body', SILENCE],
    ['a response within the deadline', null],
  ])('must be queried again without %s for one eSIM, which may be in use', async (_what, answer) => {
    await expect(findCancelStatuses(await withUnread(answer), request)).rejects.toBeInstanceOf(
      ProviderUnavailable,
    );
  });

  it('has an unknown outcome only when no eSIM can be read', async () => {
    const silent = await zendit(() => SILENCE, deadlineFor(SILENCE));
    await expect(findCancelStatuses(silent, request)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
  });
});
