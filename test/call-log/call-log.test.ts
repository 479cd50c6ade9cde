import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import {
  type ApiAnswer,
  eventually,
  HttpClient,
  loggedCall,
  leastOf,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';

type Row = Record<string, unknown>;

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});

afterAll(async () => {
  await service.stop();
});

const requestsOf = (id: string, query = '') =>
  service.admin.get(`/internal/v1/partners/${id}/requests${query}`);
const requestId = (answer: ApiAnswer) => answer.headers.get('x-request-id')!;

/** Returns the row of this call. Another test covers how soon it is written. */
const logged = (answer: ApiAnswer): Promise<Row> => loggedCall(service.admin, answer);

function expectProblem(answer: ApiAnswer, status: number, code: string): void {
  expect([answer.status, answer.body.code]).toEqual([status, code]);
}

describe('the call log row', () => {
  it('is stored within a second (D38)', async () => {
    const promisedMs = 1_000;
    const quickestMs = await leastOf(promisedMs, async () => {
      const answer = await partner.sandbox.get('/v1/me');
      const answeredAt = performance.now();
      await logged(answer);
      return performance.now() - answeredAt;
    });
    expect(quickestMs).toBeLessThan(promisedMs);
  });

  it('has key, partner, route, status, latency and mode', async () => {
    const answer = await partner.sandbox.get('/v1/catalog/pkg_none?x=1', { 'x-request-id': 'mine-1' });
    const keys = await service.admin.get(`/internal/v1/partners/${partner.id}/api-keys`);
    expect(await logged(answer)).toEqual({
      request_id: requestId(answer),
      client_request_id: 'mine-1',
      key_id: keys.body.data[0].id,
      partner_id: partner.id,
      mode: 'sandbox',
      method: 'GET',
      route: '/v1/catalog/:package_id',
      path: '/v1/catalog/pkg_none',
      status: answer.status,
      error_code: answer.body.code,
      latency_ms: expect.any(Number),
      remote_address: expect.stringContaining('127.0.0.1'),
      replay_of: null,
      suppressed: null,
      created_at: expect.stringMatching(/Z$/),
    });
  });

  it('is written for unknown paths, wrong methods and refused calls', async () => {
    expect(await logged(await partner.sandbox.get('/v1/nowhere'))).toMatchObject({
      status: 404,
      route: null,
      path: '/v1/nowhere',
      error_code: 'not_found',
      partner_id: partner.id,
    });
    expect(await logged(await partner.sandbox.call('DELETE', '/v1/catalog'))).toMatchObject({ status: 405 });
    const anonymous = await service.partnerApi(null).get('/v1/catalog');
    expect(await logged(anonymous)).toMatchObject({
      status: 401,
      error_code: 'unauthorized',
      key_id: null,
      partner_id: null,
      mode: null,
    });
  });

  it('references the first call when the response is a replay', async () => {
    const order = { package_id: 'pkg_none' };
    const options = { idempotencyKey: 'logged-replay-1' };
    const first = await partner.sandbox.post('/v1/orders', order, options);
    const again = await partner.sandbox.post('/v1/orders', order, options);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    const replays = async () => {
      const answer = await requestsOf(partner.id, `?replay_of=${requestId(first)}`);
      return answer.body.data.length > 0 && (answer.body.data as Row[]);
    };
    const [replay, ...others] = await eventually('row of the replay', replays);
    expect(others).toEqual([]);
    // D8: the replay's header has the first call's id. Its own id is only in the log.
    expect(replay!['request_id']).not.toBe(requestId(first));
    expect(await logged(first)).toMatchObject({ replay_of: null, method: 'POST', route: '/v1/orders' });
  });

  it('never contains a key that was sent in the path', async () => {
    const answer = await service.partnerApi(null).get(`/v1/${partner.sandboxKey}`);
    const row = await logged(answer);
    expect(row['path']).toBe(`/v1/svc_${'sk'}_test_[redacted]`);
  });
});

describe("a partner's call list", () => {
  let owner: TestPartner;
  let calls: ApiAnswer[];

  beforeAll(async () => {
    owner = await service.createPartner();
    const live = service.partnerApi(await service.createKey(owner.id, 'live'));
    calls = [
      await owner.sandbox.get('/v1/me'),
      await owner.sandbox.get('/v1/catalog?limit=1'),
      await owner.sandbox.get('/v1/nowhere'),
      await live.get('/v1/me'),
      await owner.sandbox.post('/v1/orders', {}),
    ];
    for (const call of calls) await logged(call);
  });

  const listed = async (query = '') =>
    ((await requestsOf(owner.id, query)).body.data as Row[]).map((row) => row['request_id']);

  it('is newest first, and its pages are stable while calls are made', async () => {
    const ids = calls.map(requestId).reverse();
    const first = await requestsOf(owner.id, '?limit=2');
    await logged(await owner.sandbox.get('/v1/me'));
    const second = await requestsOf(owner.id, `?limit=2&cursor=${first.body.next_cursor}`);
    const third = await requestsOf(owner.id, `?limit=2&cursor=${second.body.next_cursor}`);
    const pages = [...first.body.data, ...second.body.data, ...third.body.data] as Row[];
    expect(pages.map((row) => row['request_id'])).toEqual(ids);
    expect([third.body.has_more, third.body.next_cursor]).toEqual([false, null]);
    expectProblem(
      await requestsOf(partner.id, `?limit=2&cursor=${first.body.next_cursor}`),
      400,
      'invalid_cursor',
    );
    expectProblem(
      await requestsOf(owner.id, `?cursor=${first.body.next_cursor}&mode=live`),
      400,
      'invalid_cursor',
    );
  });

  it('can be filtered by each field, and by all together', async () => {
    const [me, catalog, nowhere, live, order] = calls.map(requestId);
    const row = await logged(calls[3]!);
    const day = { after: '2000-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' };
    expect(await listed(`?request_id=${me}`)).toEqual([me]);
    expect(await listed(`?key_id=${String(row['key_id'])}`)).toEqual([live]);
    expect(await listed('?method=POST')).toEqual([order]);
    expect(await listed('?route=/v1/catalog')).toEqual([catalog]);
    expect(await listed('?status=404')).toEqual([nowhere]);
    expect(await listed('?mode=live')).toEqual([live]);
    expect(await listed(`?created_before=${day.after}`)).toEqual([]);
    expect(await listed(`?created_after=${day.before}`)).toEqual([]);
    expect(
      await listed(`?created_after=${String(row['created_at'])}&created_before=${day.before}&mode=live`),
    ).toEqual([live]);
    expect(await listed('?mode=live&method=POST')).toEqual([]);
    expect(await listed(`?request_id=${requestId(await partner.sandbox.get('/v1/me'))}`)).toEqual([]);
  });

  it('refuses invalid filters', async () => {
    for (const query of [
      'status=ok',
      'status=600',
      'mode=test',
      'created_after=today',
      'path=/',
      'limit=101',
      'mode=',
    ]) {
      expectProblem(await requestsOf(owner.id, `?${query}`), 400, 'validation_failed');
    }
    expectProblem(await requestsOf(owner.id, '?mode=live&mode=live'), 400, 'validation_failed');
    expectProblem(await requestsOf(owner.id, '?cursor=abc'), 400, 'invalid_cursor');
  });
});

it('returns 404 for unknown and malformed ids, and 401 without an admin token', async () => {
  for (const id of [newId('ptn'), newId('key'), 'ptn_1'])
    expectProblem(await requestsOf(id), 404, 'not_found');
  for (const id of [newId('req'), newId('key'), 'req_1']) {
    expectProblem(await service.admin.get(`/internal/v1/requests/${id}`), 404, 'not_found');
  }
  const stranger = new HttpClient(service.admin.baseUrl, partner.sandboxKey);
  const known = requestId(await partner.sandbox.get('/v1/me'));
  expectProblem(await stranger.get(`/internal/v1/requests/${known}`), 401, 'unauthorized');
  expectProblem(await stranger.get(`/internal/v1/partners/${partner.id}/requests`), 401, 'unauthorized');
});

it('writes last_used_at with the first call and then at most once a minute', async () => {
  const key = await service.createKey(partner.id, 'live');
  const last4 = key.slice(-4);
  const read = async () => {
    const keys = await service.admin.get(`/internal/v1/partners/${partner.id}/api-keys?mode=live&limit=100`);
    return (keys.body.data as Row[]).find((shown) => shown['last4'] === last4)!['last_used_at'] as
      string | null;
  };
  expect(await read()).toBeNull();
  const calledAt = Date.now();
  await service.partnerApi(key).get('/v1/me');
  const first = await eventually('last_used_at', read);
  expect(Date.parse(first)).toBeGreaterThan(calledAt - 5_000);
  expect(Date.parse(first)).toBeLessThan(Date.now() + 5_000);
  await logged(await service.partnerApi(key).get('/v1/me'));
  expect(await read()).toBe(first);
});

it('caps the rows of refused calls of a known key, counts the rest in one row, and loses none on a stop (D45)', async () => {
  const env = { RATE_LIMIT_PER_MINUTE: '1', RATE_LIMIT_BURST: '20' };
  const own = await startTestService({ database: service.database, role: 'api', env });
  const { id } = await service.createPartner();
  const call = async (key: string) => {
    const answers = await Promise.all(Array.from({ length: 150 }, () => own.partnerApi(key).get('/v1/me')));
    return answers.map((answer) => answer.status);
  };
  const limited = await call(await service.createKey(id, 'sandbox'));
  const elsewhere = await service.admin.post(`/internal/v1/partners/${id}/api-keys`, {
    mode: 'live',
    allowed_cidrs: ['203.0.113.0/24'],
  });
  const refused = await call(elsewhere.body.data.key as string);
  expect(refused).toEqual(Array(150).fill(403));
  expect(limited.filter((status) => status === 429)).toHaveLength(130);
  const left = await own.partnerApi(elsewhere.body.data.key as string).get('/v1/me');
  expect(left.headers.get('x-ratelimit-remaining')).toBe('0');
  await own.stop();
  const { rows } = await service.database.pool.query(
    `SELECT status, count(*) FILTER (WHERE suppressed IS NULL)::int AS rows, sum(suppressed)::int AS suppressed
     FROM api_calls WHERE partner_id = $1 GROUP BY 1 ORDER BY 1`,
    [id],
  );
  expect(rows).toEqual([
    { status: 200, rows: 20, suppressed: null },
    { status: 403, rows: 60, suppressed: 91 },
    { status: 429, rows: 60, suppressed: 70 },
  ]);
  const listed = await requestsOf(id, '?status=403&limit=1');
  expect(listed.body.data[0]).toMatchObject({ status: 403, suppressed: 91, method: 'GET', route: '/v1/me' });
});
