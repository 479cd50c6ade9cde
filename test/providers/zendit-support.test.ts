import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SIMULATOR_API_KEY } from '../../simulators/zendit/simulator.js';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import type { ZenditProvider } from '../../src/providers/zendit/index.js';
import { type AnsweringServer, startAnsweringServer, type WireAnswer } from './answering-server.js';
import { findParts, findStandings } from './support-conformance.js';
import { newOrder } from './zendit-suite.js';
import { ZenditBench } from './zendit-world.js';

const UNKNOWN: WireAnswer = { status: 404, json: { errorCode: 'NOT_FOUND', message: 'not found' } };
/** A 200 without a word in it. */
const SILENCE: WireAnswer = { status: 200, json: undefined };

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

/** A Zendit where nothing was refunded; `answer` is asked about the purchase or the plans of a path. */
async function zendit(answer: (path: string) => WireAnswer): Promise<ZenditProvider> {
  server = await startAnsweringServer((_method, path) => (path.endsWith('/refund') ? UNKNOWN : answer(path)));
  return bench.provider({ baseUrl: `${server.url}/v1`, apiKey: SIMULATOR_API_KEY });
}

describe('an order that support looks at, of whose purchases one is not as the contract has it', () => {
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

  /** Every purchase is done, but what is answered of the odd one is `answer`. */
  const withOdd = (answer: WireAnswer) =>
    zendit((path) => {
      const transactionId = path.split('/').at(-1)!;
      return transactionId === odd ? answer : purchase(transactionId);
    });

  it.each([
    ['has a status that nobody knows: it counts as running', purchase(odd, 'REVERSED'), [1, 0]],
    ['is another purchase: it counts as unusable', purchase('po_other-1'), [0, 1]],
    ['is no object: it counts as unusable', { status: 200, json: [] }, [0, 1]],
  ] as const)('hides no other one, when it %s', async (_what, answer, [running, unusable]) => {
    const parts = await findParts(await withOdd(answer), order);
    expect(parts).toMatchObject({ running, unusable, failure: null });
    expect(parts.profiles.map(({ providerEsimId }) => providerEsimId)).toEqual(ids);
  });

  it('is to be looked at again when that one is not answered', async () => {
    await expect(findParts(await withOdd(SILENCE), order)).rejects.toBeInstanceOf(ProviderUnavailable);
  });

  it('has no answer only when none is answered', async () => {
    const silent = await zendit(() => SILENCE);
    await expect(findParts(silent, order)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
  });
});

describe('a cancellation that support looks at, of whose eSIMs one cannot be read', () => {
  const issuedAt = new Date(Date.now() - 60_000);
  const [used, unread] = ['8910300000000000001', '8910300000000000002'];
  const request = {
    reference: 'po_cancel',
    quantity: 2,
    esims: [used, unread].map((iccid, i) => ({ providerEsimId: `po_cancel-${i + 1}`, iccid, issuedAt })),
  };
  const USED: WireAnswer = { status: 200, json: { firstInstalledAt: new Date().toISOString(), list: [] } };

  const withUnread = (answer: WireAnswer) => zendit((path) => (path.includes(unread) ? answer : USED));

  it('still shows which one is in use when the plan of that one has a status that nobody knows', async () => {
    const answer = { status: 200, json: { list: [{ status: 'SUSPENDED' }] } };
    const standings = await findStandings(await withUnread(answer), request);
    expect(standings.map(({ standing }) => standing)).toEqual(['in_use', 'unknown']);
  });

  it('is to be looked at again when that one is not answered: it may be in use', async () => {
    await expect(findStandings(await withUnread(SILENCE), request)).rejects.toBeInstanceOf(
      ProviderUnavailable,
    );
  });

  it('has no answer only when none can be read', async () => {
    const silent = await zendit(() => SILENCE);
    await expect(findStandings(silent, request)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
  });
});
