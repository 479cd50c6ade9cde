import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type AnswerFacts,
  type CallFacts,
  EsimApiError,
  EsimClient,
  EsimConnectionError,
  type Intent,
  type IntentStore,
  Purchases,
} from '../../sdk/src/index.js';
import { freePort } from '../../chaos/free-port.js';
import { startTestService, type TestService } from '../harness/index.js';

const RESOURCES = [
  'catalog',
  'orders',
  'esims',
  'topups',
  'refunds',
  'wallet',
  'events',
  'requests',
  'sandbox',
] as const;

let service: TestService;
let apiKey: string;
let esim: EsimClient;
let facts: (CallFacts | AnswerFacts)[];
beforeAll(async () => {
  service = await startTestService();
  apiKey = (await service.createPartner()).sandboxKey;
});
beforeEach(() => {
  facts = [];
  esim = clientAt(service.process.api!.url);
});
afterAll(() => service.stop());

function clientAt(baseUrl: string): EsimClient {
  const tell = (fact: CallFacts | AnswerFacts): unknown => facts.push(fact);
  return new EsimClient({ apiKey, baseUrl, maxTries: 1, onTry: tell, onAnswer: tell });
}

/** Checks all ways in which a program may log a value. */
function expectWithoutKey(value: unknown): void {
  const seen = inspect(value, { depth: Infinity, showHidden: true, getters: true, maxArrayLength: null });
  expect(seen.length).toBeGreaterThan(0);
  for (const text of [seen, JSON.stringify(value) ?? '', String(value), JSON.stringify({ ...Object(value) })])
    expect(text).not.toContain(apiKey);
}

/** Checks the value and everything reachable from its fields, whatever the fields' names. */
function expectUnreachable(value: unknown, seen = new Set<unknown>()): void {
  if (typeof value === 'string') return expect(value).not.toContain(apiKey);
  if (value === null || typeof value !== 'object' || seen.has(value)) return;
  seen.add(value);
  for (const name of Reflect.ownKeys(value)) expectUnreachable(Reflect.get(value, name), seen);
}

async function thrownBy(call: PromiseLike<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('it was refused'),
    (error: unknown) => error,
  );
}

function storeOf(open: readonly Intent[]): IntentStore {
  return {
    add: (intent) => Promise.resolve(intent),
    finish: () => Promise.resolve(),
    listOpen: () => Promise.resolve(open),
  };
}

describe('the API key', () => {
  it('does not appear in the client', () => {
    expectWithoutKey(esim);
    expectUnreachable(esim);
    expect(structuredClone(JSON.parse(JSON.stringify(esim)))).toMatchObject({ mode: 'sandbox' });
  });

  it.each(RESOURCES)('does not appear in the resource %s', (name) => {
    expectWithoutKey(esim[name]);
    expectUnreachable(esim[name]);
  });

  it('does not appear in a list, its pages and the arguments of hooks', async () => {
    const list = esim.catalog.list({ limit: 1 });
    expectWithoutKey(list);
    expectUnreachable(list);
    expectWithoutKey(await list);
    const pages = list.pages();
    await pages.next();
    expectWithoutKey(pages);
    expect(facts.length).toBeGreaterThan(3);
    expectWithoutKey(facts);
  });

  it('does not appear in an API error or a connection error', async () => {
    const refused = await thrownBy(esim.orders.place({ package_id: 'pkg_nobody' }));
    expect(refused).toBeInstanceOf(EsimApiError);
    const nobody = clientAt(`http://127.0.0.1:${await freePort()}`);
    const failed = await thrownBy(nobody.me());
    expect(failed).toBeInstanceOf(EsimConnectionError);
    expect((failed as Error).cause).toBeDefined();
    for (const error of [refused, failed]) {
      expectWithoutKey(error);
      expectUnreachable(error);
    }
  });

  it('does not appear in the error for an invalid key, while a trailing newline is accepted', async () => {
    const options = { baseUrl: service.process.api!.url, maxTries: 1 };
    const wrong = (): Promise<unknown> =>
      Promise.resolve().then(() => new EsimClient({ ...options, apiKey: `${apiKey}\nX` }).me());
    const error = await thrownBy(wrong());
    expect(error).toBeInstanceOf(TypeError);
    expectWithoutKey(error);
    const me = await new EsimClient({ ...options, apiKey: `${apiKey}\n` }).me();
    expect(me.mode).toBe('sandbox');
  });

  it('does not appear in purchases and their results', async () => {
    const intent = { id: 'key-1', idempotencyKey: crypto.randomUUID(), kind: 'order' } as const;
    const purchases = new Purchases(
      esim,
      storeOf([{ ...intent, body: { package_id: 'pkg_nobody', reference: 'key-1' } }]),
    );
    expectWithoutKey(purchases);
    expectUnreachable(purchases);
    const resumed = await purchases.resume();
    expect(resumed).toMatchObject([{ result: null, error: { code: 'not_found' } }]);
    expectWithoutKey(resumed);
  });

  it('does not appear in a stream of events, before and while it reads', async () => {
    await esim.orders.waitFor((await esim.orders.place({ package_id: 'pkg_fr_1gb_7d' })).id);
    const stream = esim.events.stream();
    expectWithoutKey(stream);
    const first = await stream.next();
    expect(first).toMatchObject({ done: false, value: { type: 'order.issued' } });
    expectWithoutKey(stream);
    expectUnreachable(stream);
    expectWithoutKey(first);
    await stream.return();
  });
});
