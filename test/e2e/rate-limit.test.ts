import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  eventually,
  type HttpClient,
  startTestService,
  type TestService,
} from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { askRedis } from '../harness/redis.js';

const LIMITS = { RATE_LIMIT_PER_MINUTE: '60', RATE_LIMIT_BURST: '120' };
const BURST = 120;
const TOKEN_MS = 1_000;

let service: TestService;
/** A second API process on the same database. */
let sibling: TestService;

beforeAll(async () => {
  service = await startTestService({ env: LIMITS });
  sibling = await startTestService({ env: LIMITS, role: 'api', database: service.database });
});

afterAll(async () => {
  await sibling.stop();
  await service.stop();
});

/** One key, used at both processes. */
interface Bucket {
  readonly partnerId: string;
  readonly key: string;
  readonly here: HttpClient;
  readonly there: HttpClient;
}

/** Creates a key with a full bucket. */
async function fullBucket(owner?: string): Promise<Bucket> {
  const partnerId = owner ?? (await service.createPartner()).id;
  const key = await service.createKey(partnerId, 'sandbox');
  return { partnerId, key, here: service.partnerApi(key), there: sibling.partnerApi(key) };
}

/** Empties a bucket. The next token comes after six seconds. */
async function drain({ partnerId, here }: Bucket): Promise<void> {
  await here.get('/v1/me');
  const { rows } = await service.database.pool.query<{ id: string; tat: string }>(
    `SELECT id, ((extract(epoch FROM now()) + $2) * 1000000)::bigint AS tat FROM api_keys WHERE partner_id = $1`,
    [partnerId, BURST + 5],
  );
  for (const { id, tat } of rows) await setBucket(id, tat);
}

async function setBucket(key: string, tat: string): Promise<void> {
  const { redis } = service.process.resources.config;
  if (redis?.topology !== 'single') {
    await service.database.pool.query('UPDATE rate_buckets SET tat = $2 WHERE key = $1', [key, tat]);
    return;
  }
  const { port, pathname } = new URL(redis.url);
  const options = { port: Number(port), db: Number(pathname.slice(1)) };
  await askRedis(options, (client) => client.set(`rate:${key}`, tat, 'EX', 600));
}

const header = (answer: ApiAnswer, name: string): number => Number(answer.headers.get(name));
const remaining = (answer: ApiAnswer): number => header(answer, 'x-ratelimit-remaining');

interface Burst {
  readonly answers: readonly ApiAnswer[];
  readonly passed: readonly ApiAnswer[];
  readonly refused: readonly ApiAnswer[];
  readonly beganAtS: number;
  readonly endedAtS: number;
}

async function burst(calls: readonly HttpClient[]): Promise<Burst> {
  const beganAtS = Date.now() / 1_000;
  const answers = await Promise.all(calls.map((api) => api.get('/v1/me')));
  const passed = answers.filter((answer) => answer.status === 200);
  const refused = answers.filter((answer) => answer.status !== 200);
  return { answers, passed, refused, beganAtS, endedAtS: Date.now() / 1_000 };
}

/** Expects the bucket's size plus at most the tokens refilled during the burst. */
function expectExactlyTheBucket({ passed, beganAtS, endedAtS }: Burst): void {
  expect(passed.length).toBeGreaterThanOrEqual(BURST);
  expect(passed.length).toBeLessThanOrEqual(BURST + Math.floor(endedAtS - beganAtS));
}

const times = <T>(n: number, item: T): T[] => Array.from({ length: n }, () => item);

describe('60 calls a minute with bursts of 120', () => {
  it('allows exactly 120 of 200 concurrent calls, and returns the rate headers to each', async () => {
    const { here } = await fullBucket();
    const calls = await burst(times(200, here));
    expectExactlyTheBucket(calls);
    expect(calls.passed.map(remaining)).toContain(BURST - 1);
    expect(calls.passed.map(remaining)).toContain(0);
    for (const answer of calls.refused) {
      expectProblem(answer, 429, 'rate_limited');
      expect(answer.body.retryable).toBe(true);
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(remaining(answer)).toBe(0);
    }
    for (const answer of calls.answers) {
      expect(header(answer, 'x-ratelimit-limit')).toBe(BURST);
      expect(answer.headers.get('x-ratelimit-reset')).toMatch(/^\d+$/);
    }
  });

  it('returns the Unix second at which the bucket is full again', async () => {
    const { here } = await fullBucket();
    const beforeS = Date.now() / 1_000;
    const reset = header(await here.get('/v1/me'), 'x-ratelimit-reset');
    expect(reset).toBeGreaterThanOrEqual(Math.floor(beforeS + 1));
    expect(reset).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000 + 1));
    const { refused, beganAtS, endedAtS } = await burst(times(150, here));
    for (const answer of refused) {
      // The bucket was empty, with less than one token left.
      expect(header(answer, 'x-ratelimit-reset')).toBeGreaterThanOrEqual(Math.floor(beganAtS + BURST - 1));
      expect(header(answer, 'x-ratelimit-reset')).toBeLessThanOrEqual(Math.ceil(endedAtS + BURST));
    }
  });

  it('is exact across two API processes', async () => {
    const { here, there } = await fullBucket();
    const calls = await burst([here, there].flatMap((api) => times(100, api)));
    // A statement that waited for a lock calculates with its earlier start time. The next calls take the tokens that
    // were refilled during the wait.
    const rest = await burst(times(3, here));
    expectExactlyTheBucket({ ...calls, passed: [...calls.passed, ...rest.passed], endedAtS: rest.endedAtS });
  });

  it('allows the next call after Retry-After, and not earlier', async () => {
    const { here, there } = await fullBucket();
    await burst(times(BURST, here));
    // A token may have been refilled in the meantime and is spent too.
    const refused = await eventually('a refusal', async () => {
      const answer = await there.get('/v1/me');
      return answer.status === 429 && answer;
    });
    const waitS = header(refused, 'retry-after');
    expect(waitS).toBeLessThanOrEqual(2);
    await sleep(waitS * TOKEN_MS);
    expect((await there.get('/v1/me')).status).toBe(200);
  });

  it('does not affect other keys of the same partner', async () => {
    const { here, partnerId } = await fullBucket();
    const other = await fullBucket(partnerId);
    const [, calm] = await Promise.all([burst(times(150, here)), other.here.get('/v1/me')]);
    expect([calm.status, remaining(calm)]).toEqual([200, BURST - 1]);
    // Tokens may have been refilled in the meantime.
    expect(remaining(await other.there.get('/v1/me'))).toBeGreaterThanOrEqual(BURST - 2);
  });
});

describe('the cost of a call', () => {
  it('is one token for every authenticated call: 404, 405, 400, 304, 409, 415, 202 and its replay', async () => {
    const { here } = await fullBucket();
    const etag = (await here.get('/v1/catalog?limit=1')).headers.get('etag')!;
    const order = { package_id: 'pkg_fr_1gb_7d' };
    const calls: [number, () => Promise<ApiAnswer>][] = [
      [404, () => here.get('/v1/nothing-here')],
      [404, () => here.get('/')],
      [404, () => here.get('/v1/orders/ord_00000000000000000000000000')],
      [405, () => here.call('DELETE', '/v1/orders')],
      [400, () => here.get('/v1/catalog?limit=0')],
      [400, () => here.get('/v1/%zz')],
      [304, () => here.get('/v1/catalog?limit=1', { 'if-none-match': etag })],
      [400, () => here.post('/v1/orders', order, { idempotencyKey: null })],
      [400, () => here.post('/v1/orders', '{')],
      [415, () => here.post('/v1/orders', 'x', { headers: { 'content-type': 'text/plain' } })],
      [409, () => here.post('/v1/orders', { package_id: 'pkg_fr_topup_1gb_7d' })],
      [202, () => here.post('/v1/orders', order, { idempotencyKey: 'twice-the-same' })],
      [202, () => here.post('/v1/orders', order, { idempotencyKey: 'twice-the-same' })],
      [200, () => here.get('/v1/me')],
    ];
    // One token is refilled per second since the first call's reset time.
    const beganAtS = Date.now() / 1_000;
    for (const [nth, [status, call]] of calls.entries()) {
      const answer = await call();
      expect(answer.status, answer.text).toBe(status);
      const spent = nth + 2;
      const refilled = Date.now() / 1_000 - beganAtS + 1;
      expect(remaining(answer), `after call ${nth}`).toBeGreaterThanOrEqual(BURST - spent);
      expect(remaining(answer), `after call ${nth}`).toBeLessThanOrEqual(BURST - spent + refilled);
      expect(header(answer, 'x-ratelimit-limit')).toBe(BURST);
      expect(answer.headers.get('x-ratelimit-reset')).toMatch(/^\d+$/);
    }
  });

  it('is zero for a 401, which has no rate-limit headers', async () => {
    const { key, here } = await fullBucket();
    for (const api of [
      service.partnerApi(null),
      service.partnerApi(`${key.slice(0, -1)}*`),
      sibling.partnerApi('x'),
    ]) {
      const answer = await api.get('/v1/me');
      expectProblem(answer, 401, 'unauthorized');
      const names = [...answer.headers.keys()];
      expect(names.filter((name) => name.startsWith('x-ratelimit') || name === 'retry-after')).toEqual([]);
    }
    expect(remaining(await here.get('/v1/me'))).toBe(BURST - 1);
  });

  it('is charged before path, method and body are checked, so an empty bucket always means 429', async () => {
    // One token a minute, so that none is refilled during the test.
    const env = { RATE_LIMIT_PER_MINUTE: '1', RATE_LIMIT_BURST: '1' };
    const slow = await startTestService({ env, role: 'api', database: service.database });
    const here = slow.partnerApi((await fullBucket()).key);
    await here.get('/v1/me');
    const answers = await Promise.all([
      here.get('/v1/nothing-here'),
      here.call('DELETE', '/v1/orders'),
      here.post('/v1/orders', '{', { idempotencyKey: null }),
    ]);
    await slow.stop();
    for (const answer of answers) expectProblem(answer, 429, 'rate_limited');
  });

  it('does not include the Idempotency-Key, which stays unused after a 429', async () => {
    const bucket = await fullBucket();
    const { here, there } = bucket;
    await drain(bucket);
    const idempotencyKey = 'met-the-limit-1';
    const refused = await here.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey });
    expectProblem(refused, 429, 'rate_limited');
    await sleep(header(refused, 'retry-after') * TOKEN_MS);
    const accepted = await there.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey });
    expect([accepted.status, accepted.headers.get('idempotent-replayed')]).toEqual([202, null]);
  });
});
