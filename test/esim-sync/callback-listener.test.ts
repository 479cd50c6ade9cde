import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCallbacks } from '../../src/apps/callbacks.app.js';
import { startRole } from '../../src/apps/role-process.js';
import { loadConfig } from '../../src/config/index.js';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import {
  createTestDatabase,
  startTestService,
  type TestDatabase,
  testEnvironment,
  type TestService,
} from '../harness/index.js';
import { type Answer, callAt, ENV, HEALTH, HINT, PATH } from './callback-calls.js';
import { SECRET } from './live-world.js';

let database: TestDatabase;
let worker: TestService;
let base: string;

beforeAll(async () => {
  database = await createTestDatabase();
  worker = await startTestService({ role: 'worker', database, env: ENV });
  base = worker.process.callbacksUrl!;
});
afterAll(async () => {
  await worker.stop();
  await database.drop();
});

/** The response without its request id. */
function withoutId({ status, body, headers }: Answer): unknown {
  const id = String(headers['x-request-id']);
  return { status, body: body.replace(id, 'req_'), headers: { ...headers, 'x-request-id': 'req_' } };
}

const call: typeof callAt = (path, options) => callAt(path, { url: base, ...options });

/** Starts a listener without a worker that accepts every callback and does nothing. */
async function listen(env: Record<string, string>, logger = pino({ level: 'silent' })) {
  const config = loadConfig(testEnvironment(database.url, { ...ENV, ...env }));
  const take = { knows: () => true, take: () => Promise.resolve([]) };
  const resources = { config, logger, metrics: new Registry() };
  return (await startCallbacks(resources, take, () => Promise.resolve(null)))!;
}

describe('the callback listener', () => {
  it('returns 200 to a health check and to a HEAD probe', async () => {
    expect((await call(PATH)).status).toBe(200);
    expect((await call(PATH, { method: 'HEAD' })).status).toBe(200);
  });

  it('returns the same 404 for a wrong secret, an unknown provider, another path and another method', async () => {
    const wrong = `${SECRET.slice(0, -1)}${SECRET.endsWith('0') ? '1' : '0'}`;
    const answers = await Promise.all([
      call(`/callbacks/esim_access/${wrong}`),
      call(`/callbacks/esim_access/${SECRET}${SECRET}`),
      call(`/callbacks/zendit/${SECRET}`),
      call(`/callbacks/nobody/${SECRET}`),
      call(`/callbacks/${SECRET}`),
      call(`${PATH}/`),
      call('/'),
      call('/livez'),
      call('/v1/orders'),
      call(PATH, { method: 'GET' }),
      call(PATH, { method: 'PUT' }),
    ]);
    for (const answer of answers) expect(withoutId(answer)).toEqual(withoutId(answers[0]));
    expect(answers[0].status).toBe(404);
    const heads = await Promise.all(
      [`/callbacks/esim_access/${wrong}`, '/'].map((path) => call(path, { method: 'HEAD' })),
    );
    for (const head of heads) expect(head.status).toBe(404);
  });

  it('accepts only JSON of at most 64 KB', async () => {
    const padded = (length: number) => JSON.stringify({ ...HEALTH, padding: 'x'.repeat(length) });
    expect((await call(PATH, { body: padded(60_000) })).status).toBe(200);
    expect((await call(PATH, { body: padded(70_000) })).status).toBe(413);
    expect((await call(PATH, { body: '{"a":' })).status).toBe(400);
    expect((await call(PATH, { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
  });

  it('accepts a callback that it does not understand', async () => {
    for (const body of ['null', '[]', '"x"', '{}', '{"notifyType":"NEW","content":{}}']) {
      expect((await call(PATH, { body })).status, body).toBe(200);
    }
  });

  it('accepts a callback with an Idempotency-Key in any format', async () => {
    expect((await call(PATH, { headers: { 'idempotency-key': '"8e03978e"' } })).status).toBe(200);
  });

  it('returns 503 when the hint cannot be stored, and 200 when the sender retries', async () => {
    const body = JSON.stringify(HINT);
    await database.pool.query('ALTER TABLE esims RENAME COLUMN poll_hint_at TO gone');
    const refused = await call(PATH, { body });
    await database.pool.query('ALTER TABLE esims RENAME COLUMN gone TO poll_hint_at');
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect((await call(PATH, { body })).status).toBe(200);
  });

  it('writes one line per callback, with neither secret nor body, and nothing into the call log', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
    const config = loadConfig(testEnvironment(database.url, { ...ENV, LOG_LEVEL: 'debug' }));
    const running = await startRole('worker', config, logger);
    const url = running.callbacksUrl!;
    await call(PATH, { url, body: JSON.stringify(HINT) });
    await call('/callbacks/esim_access/SomebodyGuesses', { url });
    await running.stop();
    const taken = lines.map((line) => JSON.parse(line)).filter((line) => line.event === 'callback.taken');
    expect(taken).toEqual([
      expect.objectContaining({ provider: 'esim_access', hints: ['esim'], status: 200 }),
    ]);
    for (const secret of [SECRET, 'SomebodyGuesses', '2500000000001'])
      expect(lines.join()).not.toContain(secret);
    const { rows } = await database.pool.query('SELECT count(*)::int AS calls FROM api_calls');
    expect(rows).toEqual([{ calls: 0 }]);
  });
});

describe('the rate limit of callbacks (D21)', () => {
  it('has one bucket per sender that knows the secret: 429 with Retry-After, and others are unaffected', async () => {
    const limits = {
      CALLBACK_RATE_LIMIT_PER_MINUTE: '1',
      CALLBACK_RATE_LIMIT_BURST: '2',
      CALLBACK_TRUST_PROXY: '1',
    };
    const limited = await startTestService({ role: 'worker', database, env: { ...ENV, ...limits } });
    const url = limited.process.callbacksUrl!;
    const from = (address: string, path = PATH) =>
      call(path, { url, headers: { 'x-forwarded-for': address } });
    try {
      // Calls with a wrong secret do not count against a sender.
      for (let i = 0; i < 3; i++) expect((await from('192.0.2.1', `${PATH}x`)).status).toBe(404);
      expect((await from('192.0.2.1')).status).toBe(200);
      expect((await from('192.0.2.1')).status).toBe(200);
      const refused = await from('192.0.2.1');
      expect(refused.status).toBe(429);
      const retryAfterS = Number(refused.headers['retry-after']);
      expect(retryAfterS).toBeGreaterThan(0);
      expect(retryAfterS).toBeLessThanOrEqual(60);
      expect((await from('192.0.2.2')).status).toBe(200);
    } finally {
      await limited.stop();
    }
  });
});

describe('sender addresses', () => {
  it.each([
    ['are refused when they are not allowed', '192.0.2.0/24', '0', undefined, 404],
    ['are those of the peer without a trusted proxy', '127.0.0.1', '0', '192.0.2.1', 200],
    ['ignore X-Forwarded-For without a trusted proxy', '192.0.2.0/24', '0', '192.0.2.1', 404],
    ['are those that a trusted proxy saw', '192.0.2.0/24', '1', '8.8.8.8, 192.0.2.1', 200],
    [
      'ignore earlier X-Forwarded-For entries behind a trusted proxy',
      '192.0.2.0/24',
      '1',
      '192.0.2.1, 8.8.8.8',
      404,
    ],
    ['match IPv6 networks', '2001:db8::/32, ::1', '1', '2001:db8::7', 200],
    ['may have a port from the proxy', '192.0.2.0/24', '1', '192.0.2.1:5678', 200],
    ['may have a port from the proxy after IPv6', '2001:db8::/32', '1', '[2001:db8::7]:443', 200],
    ['do not fall back to the proxy when they are unknown', '127.0.0.1', '1', 'unknown', 404],
    ['do not fall back to the proxy when they are empty', '127.0.0.1', '1', '192.0.2.1, ', 404],
  ])('%s', async (_name, cidrs, hops, forwarded, status) => {
    // The proxy settings of the APIs do not apply to this port.
    const others = hops === '0' ? '1' : '0';
    const env = { CALLBACK_ALLOWED_CIDRS: cidrs, CALLBACK_TRUST_PROXY: hops, TRUST_PROXY: others };
    const listener = await listen(env);
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const answer = await call(PATH, { url: listener.url, headers });
    await listener.close(1_000);
    expect(answer.status).toBe(status);
  });
});

it('does not listen without a secret', async () => {
  const own = await startTestService({ role: 'worker', database, env: { ...ENV, CALLBACK_SECRET: '' } });
  expect(own.process.callbacksUrl).toBeNull();
  await own.stop();
});

it.each([
  [{ TRUST_PROXY: '1' }, ['callback.proxies_not_trusted']],
  [{ TRUST_PROXY: '1', CALLBACK_TRUST_PROXY: '1' }, []],
  [{}, []],
])('warns at startup about untrusted proxies with %o: %j', async (env, wanted) => {
  const events: unknown[] = [];
  const write = (line: string): void => void events.push((JSON.parse(line) as { event?: string }).event);
  await (await listen(env, pino({ level: 'warn' }, { write }))).close(1_000);
  expect(events).toEqual(wanted);
});
