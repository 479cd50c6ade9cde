import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type HttpClient,
  loggedCall,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { type Json, orderEnded, placeOrder } from '../harness/order-steps.js';

let service: TestService;
let partner: TestPartner;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  api = partner.sandbox;
});

afterAll(() => service.stop());

const NO_ORDER = '/v1/orders/ord_00000000000000000000000000';
const ORDER = { package_id: 'pkg_fr_1gb_7d' };

describe('envelopes (D5, D6)', () => {
  it('wraps an object, a list and a problem in exactly the documented fields', async () => {
    const { id } = await placeOrder(api, { package_id: 'pkg_fr_1gb_7d' });
    for (const path of [`/v1/orders/${id}`, '/v1/me', '/v1/catalog/pkg_fr_1gb_7d']) {
      expect(Object.keys((await api.get(path)).body)).toEqual(['request_id', 'data']);
    }
    for (const path of ['/v1/orders', '/v1/esims', '/v1/events', '/v1/catalog']) {
      expect(Object.keys((await api.get(path)).body)).toEqual([
        'request_id',
        'data',
        'has_more',
        'next_cursor',
      ]);
    }
    const problem = ['type', 'title', 'status', 'code', 'detail', 'request_id', 'retryable'];
    expect(Object.keys((await api.get('/v1/nope')).body)).toEqual(problem);
    expect(Object.keys((await api.get('/v1/orders?limit=0')).body)).toEqual([...problem, 'errors']);
  });

  it('does not repeat submitted values in a problem', async () => {
    const value = 'S3cr3tValue';
    const answers = await Promise.all([
      api.post('/v1/orders', {
        package_id: [value],
        quantity: value,
        reference: `${value}é`,
        metadata: { a: [value] },
      }),
      api.post('/v1/orders', `{"package_id": "${value}`),
      api.get(`/v1/orders?status=${value}`),
      api.get(`/v1/orders?cursor=${value}`),
      api.get(`/v1/orders/${value}`),
      api.get(`/v1/${value}`),
      api.post('/v1/orders', {}, { idempotencyKey: `${value}!` }),
      service.partnerApi(value).get('/v1/me'),
    ]);
    for (const answer of answers) {
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.text).not.toContain(value);
    }
  });
});

describe('request ids (D8) and the call log (D38)', () => {
  const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{26}$/;

  it('generates the request id, sends it in header and body, and never reuses one', async () => {
    const mine = { 'x-request-id': 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV' };
    const answers = await Promise.all([
      api.get('/v1/me', mine),
      api.get('/v1/orders', mine),
      api.get('/v1/catalog', mine),
      api.get('/v1/events', mine),
      api.get('/v1/nope', mine),
      api.get(NO_ORDER, mine),
      api.post('/v1/orders', ORDER, { headers: mine }),
      api.post('/v1/orders', {}, { headers: mine }),
      api.post(`${NO_ORDER}/cancel`, undefined, { headers: mine }),
      service.partnerApi(null).get('/v1/me', mine),
    ]);
    for (const answer of answers) {
      expect(answer.body.request_id).toMatch(REQUEST_ID);
      expect(answer.headers.get('x-request-id')).toBe(answer.body.request_id);
    }
    const ids = answers.map((answer) => answer.body.request_id as string);
    expect(new Set([...ids, mine['x-request-id']]).size).toBe(answers.length + 1);
  });

  it.each([
    [202, ORDER],
    [404, { package_id: 'pkg_no_such' }],
    [409, { package_id: 'pkg_fr_topup_1gb_7d' }],
  ])(
    'returns the id of the first call in the replay of a %i, and logs the id of the replay',
    async (status, body) => {
      const idempotencyKey = `replayed-${status}`;
      const first = await api.post('/v1/orders', body, { idempotencyKey });
      const replay = await api.post('/v1/orders', body, { idempotencyKey });
      expect([first.status, replay.status, replay.text]).toEqual([status, status, first.text]);
      for (const name of ['x-request-id', 'location', 'content-type']) {
        expect(replay.headers.get(name)).toBe(first.headers.get(name));
      }
      expect([first, replay].map((answer) => answer.headers.get('idempotent-replayed'))).toEqual([
        null,
        'true',
      ]);

      const firstId = first.body.request_id as string;
      const [call, ...more] = await loggedCalls(`replay_of=${firstId}`);
      expect(more).toEqual([]);
      expect(call).toMatchObject({
        replay_of: firstId,
        status,
        method: 'POST',
        route: '/v1/orders',
        mode: 'sandbox',
      });
      expect(call!['request_id']).toMatch(REQUEST_ID);
      expect(call!['request_id']).not.toBe(firstId);
      expect(await loggedCalls(`request_id=${firstId}`)).toMatchObject([{ replay_of: null, status }]);
    },
  );

  it('logs the error code of refused calls and of their replays', async () => {
    const idempotencyKey = 'a-logged-refusal-1';
    const refused = { package_id: 'pkg_no_such' };
    const first = await api.post('/v1/orders', refused, { idempotencyKey });
    await api.post('/v1/orders', refused, { idempotencyKey });
    const firstId = first.body.request_id as string;
    expect(await loggedCalls(`request_id=${firstId}`)).toMatchObject([{ error_code: 'not_found' }]);
    expect(await loggedCalls(`replay_of=${firstId}`)).toMatchObject([{ error_code: 'not_found' }]);
  });

  it('logs key, partner, status and latency, whatever the response', async () => {
    const { key_id } = (await api.get('/v1/me')).body.data;
    const calls: [string, number, string | null][] = [
      ['/v1/me', 200, '/v1/me'],
      [NO_ORDER, 404, '/v1/orders/:id'],
      ['/v1/nope', 404, null],
      ['/v1/orders?limit=0', 400, '/v1/orders'],
    ];
    for (const [path, status, route] of calls) {
      const requestId = (await api.get(path)).body.request_id as string;
      const [call] = await loggedCalls(`request_id=${requestId}`);
      expect(call).toMatchObject({
        key_id,
        partner_id: partner.id,
        status,
        route,
        mode: 'sandbox',
        method: 'GET',
      });
      expect(call!['latency_ms']).toBeGreaterThan(0);
    }
  });

  it('logs calls without a valid key, and support can find them', async () => {
    const refused = await service.partnerApi('svc_sk_test_nobody').get('/v1/me');
    const requestId = refused.body.request_id as string;
    expect(await loggedCall(service.admin, refused)).toMatchObject({
      request_id: requestId,
      status: 401,
      key_id: null,
      partner_id: null,
    });
  });

  it('logs no secrets', async () => {
    const { id } = await placeOrder(api, ORDER);
    const order = await orderEnded(api, id as string);
    const install = await api.get(`/v1/esims/${order['esims'][0].esim_id}?secret=query`);
    expectProblem(install, 400, 'validation_failed');
    await loggedCalls(`request_id=${install.body.request_id}`);
    const { rows } = await service.database.pool.query('SELECT * FROM api_calls');
    expect(JSON.stringify(rows)).not.toContain('secret=query');
    expect(JSON.stringify(rows)).not.toContain(partner.sandboxKey.slice(-32));
  });

  async function loggedCalls(filter: string): Promise<Json[]> {
    return eventually(`a row with ${filter}`, async () => {
      const answer = await service.admin.get(`/internal/v1/partners/${partner.id}/requests?${filter}`);
      const calls = answer.body.data as Json[];
      return calls.length > 0 && calls;
    });
  }
});
