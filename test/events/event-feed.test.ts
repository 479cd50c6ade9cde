import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FeedWatch, MAX_WAITING_PER_KEY, MAX_WAITING_PER_PARTNER } from '../../src/events/feed-watch.js';
import {
  type ApiAnswer,
  eventually,
  leastOf,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { topUp } from '../topups/topup-steps.js';
import { recordEvents } from '../webhooks/support.js';

/** Two processes on one database. An event recorded in one wakes the waiters of the other. */
let service: TestService;
let other: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  other = await startTestService({
    database: service.database,
    role: 'api',
    env: {
      DATABASE_POOL_MAX: '2',
      LISTS_PER_PARTNER: '1',
      RATE_LIMIT_PER_MINUTE: '60',
      RATE_LIMIT_BURST: '1000',
    },
  });
});
beforeEach(async () => {
  partner = await service.createPartner();
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

const wait = (seconds: number): Record<string, string> => ({ prefer: `wait=${seconds}` });

/** Long-polls the feed in the other process, not in the one that records the events. */
function waitFor(seconds: number, query = ''): Promise<ApiAnswer> {
  return other.partnerApi(partner.sandboxKey).get(`/v1/events?limit=10${query}`, wait(seconds));
}

/** Tracks whether a promise has settled. */
function watched<T>(promise: Promise<T>): { readonly promise: Promise<T>; ended: boolean } {
  const state = { promise, ended: false };
  promise.then(
    () => (state.ended = true),
    () => (state.ended = true),
  );
  return state;
}

async function untilWaiting(calls: number, at: TestService = other): Promise<void> {
  const watch = at.process.api!.nest.get(FeedWatch, { strict: false });
  await eventually(`${calls} calls wait`, () => watch.waitingCalls === calls);
}

describe('GET /v1/events with Prefer: wait=N (D39)', () => {
  it('returns at once when there is an event after the cursor, and still confirms the preference', async () => {
    await recordEvents(service, [{ partnerId: partner.id }]);
    const startedAt = performance.now();
    const answer = await waitFor(20);
    expect(answer.body.data).toHaveLength(1);
    expect(answer.headers.get('preference-applied')).toBe('wait=20');
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  it('returns as soon as another process has committed an event', async () => {
    // The feed is polled every 50 ms. The sweep that otherwise assigns positions runs every 2 s.
    const promisedMs = 1_000;
    let cursor = '';
    const quickestMs = await leastOf(promisedMs, async (nth) => {
      const iccid = `8910000000000000${100 + nth}`;
      const waiting = watched(waitFor(25, cursor));
      await untilWaiting(1);
      expect(waiting.ended).toBe(false);
      await recordEvents(service, [{ partnerId: partner.id, iccid }]);
      const committedAt = performance.now();
      const { body } = await waiting.promise;
      const elapsedMs = performance.now() - committedAt;
      expect((body.data as Json[]).map(({ data }) => data.iccid)).toEqual([iccid]);
      cursor = `&after=${body.next_cursor}`;
      return elapsedMs;
    });
    console.log(`from the commit to the answer: ${quickestMs.toFixed(0)} ms`);
    expect(quickestMs).toBeLessThan(promisedMs);
  });

  it('returns an empty page with a cursor after the wait, and costs one token', async () => {
    await recordEvents(service, [{ partnerId: partner.id }]);
    const { body } = await waitFor(1);
    const startedAt = performance.now();
    const answer = await waitFor(1, `&after=${body.next_cursor}`);
    expect(performance.now() - startedAt).toBeGreaterThan(950);
    expect(answer.body).toMatchObject({
      data: [],
      has_more: false,
      next_cursor: expect.any(String) as string,
    });
    expect(answer.headers.get('preference-applied')).toBe('wait=1');
    const [limit, left] = ['limit', 'remaining'].map((name) =>
      Number(answer.headers.get(`x-ratelimit-${name}`)),
    );
    // Two calls of this key, minus refilled tokens.
    expect(limit! - left!).toBeLessThanOrEqual(2);
  });

  it.each([undefined, 'wait', 'wait=soon', 'wait=0', 'respond-async', 'wait=-1'])(
    'does not wait with the preference %s',
    async (prefer) => {
      const answer = await partner.sandbox.get('/v1/events', prefer === undefined ? {} : { prefer });
      expect(answer.body.data).toEqual([]);
      expect(answer.headers.get('preference-applied')).toBeNull();
    },
  );

  it.each(['wait=60', 'respond-async, WAIT = "60"; a=b'])('grants at most 25 s: %s', async (prefer) => {
    await recordEvents(service, [{ partnerId: partner.id }]);
    const answer = await partner.sandbox.get('/v1/events', { prefer });
    expect(answer.headers.get('preference-applied')).toBe('wait=25');
  });

  it('holds neither a connection nor a list slot, and returns at once beyond the limit of waits', async () => {
    const waiting = Array.from({ length: MAX_WAITING_PER_KEY }, () => watched(waitFor(25)));
    await untilWaiting(MAX_WAITING_PER_KEY);
    const crowded = await waitFor(20);
    expect(crowded.headers.get('preference-applied')).toBeNull();
    expect(crowded.body.data).toEqual([]);
    // The pool has two connections, a partner one list slot, and eight calls wait.
    const api = other.partnerApi(partner.sandboxKey);
    const lists = await Promise.all(
      ['/v1/orders', '/v1/esims', '/v1/topups', '/v1/events'].map((path) => api.get(path)),
    );
    expect(lists.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(waiting.filter(({ ended }) => ended)).toEqual([]);
    await recordEvents(service, [{ partnerId: partner.id }]);
    const answers = await Promise.all(waiting.map(({ promise }) => promise));
    expect(answers.map(({ body }) => (body.data as Json[]).length)).toEqual(waiting.map(() => 1));
  });

  it('grants a partner as many waits with ten keys as with four, and does not affect its other mode', async () => {
    const made = await Promise.all(
      Array.from({ length: 9 }, () =>
        service.admin.post(`/internal/v1/partners/${partner.id}/api-keys`, { mode: 'sandbox' }),
      ),
    );
    const keys = [partner.sandboxKey, ...made.map(({ body }) => body.data.key as string)];
    const each = Math.ceil(MAX_WAITING_PER_PARTNER / keys.length);
    const calls = keys.flatMap((key) =>
      Array.from({ length: each }, () => other.partnerApi(key).get('/v1/events', wait(25))),
    );
    await untilWaiting(MAX_WAITING_PER_PARTNER);
    const live = other.partnerApi(await service.createKey(partner.id, 'live'));
    expect((await live.get('/v1/events', wait(1))).headers.get('preference-applied')).toBe('wait=1');
    await recordEvents(service, [{ partnerId: partner.id }]);
    const applied = (await Promise.all(calls)).map(({ headers }) => headers.get('preference-applied'));
    expect(applied.filter((preference) => preference === 'wait=25')).toHaveLength(MAX_WAITING_PER_PARTNER);
  });

  it("passes a disconnected caller's slot to the next one", async () => {
    const hangUp = new AbortController();
    const calls = Array.from({ length: MAX_WAITING_PER_KEY }, () =>
      fetch(`${other.process.api!.url}/v1/events`, {
        headers: { authorization: `Bearer ${partner.sandboxKey}`, ...wait(25) },
        signal: hangUp.signal,
      }).catch(() => null),
    );
    await untilWaiting(MAX_WAITING_PER_KEY);
    hangUp.abort();
    expect(await Promise.all(calls)).toEqual(calls.map(() => null));
    await untilWaiting(0);
    expect((await waitFor(1)).headers.get('preference-applied')).toBe('wait=1');
  });

  it('keeps waiting when the new event is another partner’s or does not match', async () => {
    const waiting = watched(waitFor(25, '&type=esim.expired'));
    await untilWaiting(1);
    const stranger = await service.createPartner();
    await recordEvents(service, [
      { partnerId: stranger.id, type: 'esim.expired' },
      { partnerId: partner.id },
    ]);
    await eventually(
      'the other type is listed',
      async () => (await partner.sandbox.get('/v1/events')).body.data[0],
    );
    expect(waiting.ended).toBe(false);
    await recordEvents(service, [{ partnerId: partner.id, type: 'esim.expired' }]);
    const { body } = await waiting.promise;
    expect((body.data as Json[]).map(({ type }) => type)).toEqual(['esim.expired']);
  });

  it('returns an empty page when the process stops', async () => {
    const third = await startTestService({ database: service.database, role: 'api' });
    const call = third.partnerApi(partner.sandboxKey).get('/v1/events', wait(25));
    const waiting = watched(call);
    await untilWaiting(1, third);
    expect(waiting.ended).toBe(false);
    const stopping = third.stop();
    const answer = await call;
    expect(answer.status).toBe(200);
    expect(answer.body.data).toEqual([]);
    await stopping;
  });
});

describe('GET /v1/events?subject=', () => {
  it('lists events of the order, the eSIM or the top-up in feed order, and no others', async () => {
    const api = partner.sandbox;
    const esimId = await issueEsim(api, 'pkg_fr_1gb_7d');
    const strangerEsim = await issueEsim(api, 'pkg_fr_1gb_7d');
    for (const id of [esimId, strangerEsim]) await api.post(`/v1/sandbox/esims/${id}/activate`);
    const topup = await topUp(api, esimId, 'pkg_fr_topup_1gb_7d');
    await api.post(`/v1/sandbox/esims/${esimId}/expire`);
    const orderId = (await api.get(`/v1/esims/${esimId}`)).body.data.order_id as string;
    const typesOf = async (query: string): Promise<string[]> =>
      ((await api.get(`/v1/events?${query}`)).body.data as Json[]).map(({ type }) => type as string);
    const all = [
      ...['order.issued', 'esim.activated', 'esim.profile.changed'],
      ...['order.topup.completed', 'esim.expired'],
    ];
    expect(await typesOf(`subject=${orderId}`)).toEqual(all);
    expect(await typesOf(`subject=${esimId}`)).toEqual(all);
    expect(await typesOf(`subject=${topup['id']}`)).toEqual(['order.topup.completed']);
    expect(await typesOf(`subject=${orderId}&type=esim.expired`)).toEqual(['esim.expired']);
    const stranger = await service.createPartner();
    expect((await stranger.sandbox.get(`/v1/events?subject=${orderId}`)).body.data).toEqual([]);
    expect((await stranger.sandbox.get(`/v1/events?subject=${esimId}`)).body.data).toEqual([]);
  });

  it('returns pages with cursors that are valid for this subject only', async () => {
    const esimId = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    await partner.sandbox.post(`/v1/sandbox/esims/${esimId}/activate`);
    const first = (await partner.sandbox.get(`/v1/events?subject=${esimId}&limit=1`)).body;
    expect(first).toMatchObject({ has_more: true, data: [{ type: 'order.issued' }] });
    const next = `after=${first.next_cursor}`;
    const second = (await partner.sandbox.get(`/v1/events?subject=${esimId}&limit=1&${next}`)).body;
    expect(second).toMatchObject({ has_more: true, data: [{ type: 'esim.activated' }] });
    expect((await partner.sandbox.get(`/v1/events?${next}`)).status).toBe(400);
  });

  it.each(['', 'ord_1', 'evt_01KAEXAMPLE0000000000000000', 'pkg_fr_1gb_7d'])(
    'refuses %j',
    async (subject) => {
      const answer = await partner.sandbox.get(`/v1/events?subject=${subject}`);
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe('validation_failed');
    },
  );
});

describe('GET /v1/events', () => {
  it.each(['', '&type=order.issued'])(
    'returns every event once and in order for any page size, and resumes where it ended (D39): %s',
    async (filter) => {
      const issued = [];
      for (let i = 0; i < 3; i++) issued.push(await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d'));
      let cursor = '';
      const read = async (): Promise<string[]> => {
        const page = (await partner.sandbox.get(`/v1/events?limit=1${filter}${cursor}`)).body;
        if (page.next_cursor) cursor = `&cursor=${page.next_cursor}`;
        return (page.data as Json[]).map(({ data }) => data.esims[0].esim_id as string);
      };
      const seen: string[] = [];
      for (let pages = 0; pages < 5; pages++) seen.push(...(await read()));
      expect(seen).toEqual(issued);
      const next = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
      expect(await read()).toEqual([next]);
    },
  );
});
