import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIMULATOR_CREDENTIALS } from '../../simulators/esim-access/simulator.js';
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
import { DrippingClient } from './dripping-client.js';
import { SECRET } from './live-world.js';

const ENV = {
  // Nobody answers there: nothing of this file is about what is asked afterwards.
  ESIM_ACCESS_BASE_URL: 'http://127.0.0.1:9',
  ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
  ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
  CALLBACK_HOST: '127.0.0.1',
  CALLBACK_PORT: '0',
  CALLBACK_SECRET: SECRET,
};
const HEALTH = { notifyType: 'CHECK_HEALTH', content: { orderNo: '1234567890', orderStatus: 'Test' } };
const HINT = { notifyType: 'ESIM_STATUS', content: { esimTranNo: '2500000000001' } };
const JSON_TYPE = { 'content-type': 'application/json' };

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

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** A call as it is, with nothing added by `fetch`. */
function call(
  path: string,
  { method = 'POST', body = JSON.stringify(HEALTH), headers = {}, url = base } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, { method, headers: { ...JSON_TYPE, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => {
        const { date: _date, ...kept } = response.headers;
        resolve({ status: response.statusCode!, body: text, headers: kept });
      });
    });
    request.on('error', reject);
    request.end(method === 'HEAD' ? undefined : body);
  });
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function liveHeapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const PATH = `/callbacks/esim_access/${SECRET}`;

describe('the listener for callbacks', () => {
  it('answers a health check and a look whether anybody is there with 200', async () => {
    expect((await call(PATH)).status).toBe(200);
    expect((await call(PATH, { method: 'HEAD' })).status).toBe(200);
  });

  it('is the same 404 for a wrong secret, an unknown provider, another path and another method', async () => {
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
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0]).toMatchObject({ status: 404, body: '' });
    const heads = await Promise.all(
      [`/callbacks/esim_access/${wrong}`, '/'].map((path) => call(path, { method: 'HEAD' })),
    );
    for (const head of heads) expect(head.status).toBe(404);
  });

  it('takes JSON of at most 64 KB and nothing else', async () => {
    const padded = (length: number) => JSON.stringify({ ...HEALTH, padding: 'x'.repeat(length) });
    expect((await call(PATH, { body: padded(60_000) })).status).toBe(200);
    expect((await call(PATH, { body: padded(70_000) })).status).toBe(413);
    expect((await call(PATH, { body: '{"a":' })).status).toBe(400);
    expect((await call(PATH, { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
  });

  it('takes a callback that it cannot make anything of', async () => {
    for (const body of ['null', '[]', '"x"', '{}', '{"notifyType":"NEW","content":{}}']) {
      expect((await call(PATH, { body })).status, body).toBe(200);
    }
  });

  it('answers 503 when the hint cannot be stored, and 200 when the sender tries again', async () => {
    const body = JSON.stringify(HINT);
    await database.pool.query('ALTER TABLE esims RENAME COLUMN poll_hint_at TO gone');
    const refused = await call(PATH, { body });
    await database.pool.query('ALTER TABLE esims RENAME COLUMN gone TO poll_hint_at');
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect((await call(PATH, { body })).status).toBe(200);
  });

  it('writes one line for each callback, with neither secret nor body, and none into the call log', async () => {
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

describe('the limit of callbacks (D21)', () => {
  it('is one bucket for every sender that knows the secret: 429 with Retry-After, others go on', async () => {
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
      // Strangers cost a sender nothing.
      for (let i = 0; i < 3; i++) expect((await from('192.0.2.1', `${PATH}x`)).status).toBe(404);
      expect((await from('192.0.2.1')).status).toBe(200);
      expect((await from('192.0.2.1')).status).toBe(200);
      const refused = await from('192.0.2.1');
      expect(refused).toMatchObject({ status: 429, body: '' });
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
    ['only the allowed ones may call', '192.0.2.0/24', '0', undefined, 404],
    ['the peer counts without a trusted proxy', '127.0.0.1', '0', '192.0.2.1', 200],
    ['a claimed one counts for nothing without a trusted proxy', '192.0.2.0/24', '0', '192.0.2.1', 404],
    ['behind a trusted proxy the one that it saw counts', '192.0.2.0/24', '1', '8.8.8.8, 192.0.2.1', 200],
    ['behind a trusted proxy an invented one does not', '192.0.2.0/24', '1', '192.0.2.1, 8.8.8.8', 404],
    ['IPv6 networks too', '2001:db8::/32, ::1', '1', '2001:db8::7', 200],
  ])('%s', async (_name, cidrs, hops, forwarded, status) => {
    // The proxies of the APIs say nothing about this port.
    const others = hops === '0' ? '1' : '0';
    const env = {
      ...ENV,
      CALLBACK_ALLOWED_CIDRS: cidrs,
      CALLBACK_TRUST_PROXY: hops,
      TRUST_PROXY: others,
    };
    const own = await startTestService({ role: 'worker', database, env });
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const answer = await call(PATH, { url: own.process.callbacksUrl!, headers });
    await own.stop();
    expect(answer.status).toBe(status);
  });
});

it('does not listen without a secret', async () => {
  const own = await startTestService({ role: 'worker', database, env: { ...ENV, CALLBACK_SECRET: '' } });
  expect(own.process.callbacksUrl).toBeNull();
  await own.stop();
});

describe('a client that sends a byte at a time', () => {
  const LIMIT_MS = 800;
  const LATEST_MS = LIMIT_MS + 2_000;
  const PATIENCE = { requestTimeoutMs: LIMIT_MS, checkConnectionsMs: 50 };
  const START = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
  const CHUNKED = `${START}transfer-encoding: chunked\r\n\r\n`;

  /** A listener of its own, with little patience. */
  async function startImpatient() {
    const taken: unknown[] = [];
    const take = {
      knows: () => true,
      execute: (_provider: string, body: unknown) => Promise.resolve((taken.push(body), [])),
    };
    const config = loadConfig(testEnvironment(database.url, ENV));
    const running = (await startCallbacks(
      { config, logger: pino({ level: 'silent' }), metrics: new Registry() },
      take,
      () => Promise.resolve(null),
      PATIENCE,
    ))!;
    return { ...running, taken };
  }

  it('is answered 408 after the limit, and holds nobody up until then', async () => {
    const listener = await startImpatient();
    const drips: [string, string][] = [
      ['', ''],
      ['POST /', 'x'],
      [START, 'x'],
      [`${START}content-length: 60000\r\n\r\n`, ' '],
      [CHUNKED, '1\r\n \r\n'],
    ];
    const clients = Array.from({ length: 10 }, () => drips).flatMap((each) =>
      each.map(([head, piece]) => new DrippingClient(listener.url, head, piece)),
    );
    for (let i = 0; i < 5; i++) expect((await call(PATH, { url: listener.url })).status).toBe(200);
    expect(clients.every((client) => client.isOpen)).toBe(true);
    const cuts = await Promise.all(clients.map((client) => client.cut()));
    expect(new Set(cuts.flatMap(({ statuses }) => statuses))).toEqual(new Set([408]));
    for (const { afterMs } of cuts) {
      expect(afterMs).toBeGreaterThan(LIMIT_MS - 50);
      expect(afterMs).toBeLessThan(LATEST_MS);
    }
    expect(listener.taken).toHaveLength(5);
    await listener.close(1_000);
  });

  it('is cut as well when it was refused, or has its answer already', async () => {
    const listener = await startImpatient();
    const length = 'content-length: 60000\r\n\r\n';
    const refused = new DrippingClient(listener.url, START.replace(SECRET, 'x') + length, ' ');
    const looking = new DrippingClient(listener.url, START.replace('POST', 'HEAD') + length, ' ');
    const [no, yes] = await Promise.all([refused.cut(), looking.cut()]);
    expect([no.statuses[0], yes.statuses[0]]).toEqual([404, 200]);
    expect(Math.max(no.afterMs, yes.afterMs)).toBeLessThan(LATEST_MS);
    await listener.close(1_000);
  });

  it('has the memory of its bytes and no more', async () => {
    const listener = await startImpatient();
    const piece = '1\r\n \r\n';
    const before = liveHeapBytes();
    const client = new DrippingClient(listener.url, CHUNKED + piece.repeat(60_000), piece);
    let most = 0;
    while (client.isOpen) {
      await sleep(50);
      most = Math.max(most, liveHeapBytes() - before);
    }
    expect(most).toBeLessThan(4_000_000);
    await listener.close(1_000);
  });
});
