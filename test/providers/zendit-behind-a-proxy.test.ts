import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SIMULATOR_API_KEY } from '../../simulators/zendit/simulator.js';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import type { ZenditProvider } from '../../src/providers/zendit/zendit-provider.js';
import { type AnsweringServer, startAnsweringServer, type WireAnswer } from './answering-server.js';
import { newOrder, newReference, signal } from './zendit-suite.js';
import { TOPUP, ZenditBench } from './zendit-world.js';

/** Zendit's own responses for an unknown purchase and for a refused body. */
const UNKNOWN: WireAnswer = { status: 404, json: { errorCode: 'NOT_FOUND', message: 'not found' } };
const REFUSED: WireAnswer = { status: 400, json: { errorCode: 'INVALID_REQUEST', message: 'no such offer' } };

/** 4xx responses from a proxy in front of Zendit. None has a usable `errorCode`. */
const PROXY_RESPONSES: readonly WireAnswer[] = [
  { status: 400, json: { message: 'Bad Request' } },
  { status: 400, json: { error: 'request blocked by policy' } },
  { status: 400, json: { errorCode: '' } },
  { status: 404, json: { message: 'no Route matched with those values' } },
  { status: 404, json: { errorCode: 404 } },
  { status: 409, json: null },
  { status: 422, json: {} },
  { status: 422, json: ['INVALID_REQUEST'] },
];

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

async function zendit(answers: {
  readonly post: WireAnswer;
  readonly get: WireAnswer;
}): Promise<ZenditProvider> {
  server = await startAnsweringServer((method) => (method === 'POST' ? answers.post : answers.get));
  return bench.provider({ baseUrl: `${server.url}/v1`, apiKey: SIMULATOR_API_KEY });
}

function newTopup() {
  const esim = { providerEsimId: 'po_sold-1', iccid: '8910300000001234567', issuedAt: new Date() };
  return { reference: newReference(), esim, packageId: 'pkg_any', acceptedAt: new Date(), ...TOPUP };
}

describe('a 4xx without an errorCode', () => {
  it.each(PROXY_RESPONSES)(
    'is not a refusal of a purchase, which may have taken effect: %j',
    async (post) => {
      const provider = await zendit({ post, get: UNKNOWN });
      await expect(provider.placeOrder(newOrder(), 'first', signal)).rejects.toThrow(ProviderOutcomeUnknown);
      await expect(provider.placeOrder(newOrder(), 'again', signal)).rejects.toThrow(ProviderOutcomeUnknown);
      await expect(provider.placeTopup(newTopup(), 'first', signal)).rejects.toThrow(ProviderOutcomeUnknown);
    },
  );

  it.each(PROXY_RESPONSES)('does not prove that a purchase is unknown: %j', async (get) => {
    const provider = await zendit({ post: REFUSED, get });
    await expect(provider.findOrder(newOrder(), signal)).rejects.toThrow(ProviderUnavailable);
    await expect(provider.findTopup(newTopup(), signal)).rejects.toThrow(ProviderUnavailable);
    await expect(provider.placeOrder(newOrder(), 'again', signal)).rejects.toThrow(ProviderUnavailable);
    expect(server.calls.filter((call) => call.startsWith('POST'))).toEqual([]);
  });
});

describe('a 4xx with Zendit’s errorCode', () => {
  it('proves that the purchase is unknown or refused', async () => {
    const provider = await zendit({ post: REFUSED, get: UNKNOWN });
    expect(await provider.findOrder(newOrder(), signal)).toBeNull();
    expect(await provider.placeOrder(newOrder(), 'first', signal)).toMatchObject({ state: 'rejected' });
    expect(await provider.placeTopup(newTopup(), 'first', signal)).toMatchObject({ state: 'rejected' });
  });
});
