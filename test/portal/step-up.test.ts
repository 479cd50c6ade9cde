import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import { DOCUMENT_EVENT_TYPES, EVENT_TYPES } from '../../src/events/index.js';
import { MAX_COUNTED } from '../../src/webhooks/replay-events.js';
import {
  type ApiAnswer,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { openPortal, PortalBrowser } from '../harness/portal.js';

const SINCE = '2026-01-01T00:00:00.000Z';

let service: TestService;
let portal: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let browser: PortalBrowser;

beforeAll(async () => {
  // Without a worker, a replay stays in its initial state.
  service = await startTestService({ role: 'admin' });
  portal = await startTestService({ role: 'portal', database: service.database });
  receiver = await startReceiver();
});
afterAll(async () => {
  await portal.stop();
  await service.stop();
  await receiver.close();
});
beforeEach(async () => {
  partner = await service.createPartner();
  browser = await openPortal(service.admin, portal.process.portal!.url, partner.id);
});
afterEach(() => service.database.pool.query('DELETE FROM webhook_deliveries'));

async function made(path: string, body: object): Promise<string> {
  const answer = await service.admin.post(`/internal/v1/partners/${partner.id}/${path}`, body);
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body.data.id as string;
}

const endpointOf = (mode: string): Promise<string> => made('webhook-endpoints', { mode, url: receiver.url });

async function beOld(minutes: number): Promise<void> {
  const { id } = (await browser.get('session')).body.data;
  await service.database.pool.query(
    `UPDATE portal_sessions SET created_at = now() - $2::int * interval '1 minute' WHERE id = $1`,
    [id, minutes],
  );
}

/** Inserts events that an endpoint has already accepted. */
async function delivered(endpoint: string, count: number): Promise<void> {
  await service.database.pool.query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, ended_at, delivered_at)
     SELECT 'dlv_' || $1 || n, $1, $2, 'sandbox', 'evt_many_' || n, 'order.issued', 'event', 'delivered', now(), now()
     FROM generate_series(1, $3::int) AS n`,
    [endpoint, partner.id, count],
  );
}

const replay = (endpoint: string, body: object = {}): Promise<ApiAnswer> =>
  browser.post(`webhook-endpoints/${endpoint}/replay`, { since: SINCE, ...body });

function expectStepUp(answer: ApiAnswer): void {
  expect([answer.status, answer.body.code]).toEqual([403, 'step_up_required']);
}

describe('an action that needs a fresh session', () => {
  it('is refused in a session that is older than fifteen minutes, and changes nothing', async () => {
    const key = await made('api-keys', { mode: 'live' });
    const sandboxKey = await made('api-keys', { mode: 'sandbox' });
    const endpoint = await endpointOf('sandbox');
    const signature_schemes = ['document', 'standard'];
    const live = await made('webhook-endpoints', { mode: 'live', url: receiver.url, signature_schemes });
    await beOld(16);
    const url = 'https://partner.example/elsewhere';
    const calls = [
      () => browser.post('api-keys', { mode: 'live' }),
      () => browser.post(`api-keys/${key}/rotate`, { grace_seconds: 0 }),
      () => browser.post(`api-keys/${key}/rotate`, {}),
      () => browser.post(`api-keys/${key}/revoke`),
      () => browser.post(`webhook-endpoints/${endpoint}/enable`, { failed: 'resend' }),
      () => browser.post(`webhook-endpoints/${endpoint}/enable`, { held: 'discard' }),
      () => browser.post(`webhook-endpoints/${endpoint}/rotate-secret`),
      () => browser.post(`webhook-endpoints/${endpoint}/rotate-secret/finish`),
      () => browser.call('PATCH', `webhook-endpoints/${live}`, { body: { url } }),
      () => browser.call('DELETE', `webhook-endpoints/${live}`, { body: {} }),
      () => browser.post('webhook-endpoints', { mode: 'live', url }),
      () => browser.post(`webhook-endpoints/${live}/disable`),
      () => browser.call('PATCH', `webhook-endpoints/${live}`, { body: { event_types: ['order.issued'] } }),
      () => browser.call('PATCH', `webhook-endpoints/${live}`, { body: { signature_schemes: ['document'] } }),
    ];
    for (const call of calls) expectStepUp(await call());
    const keys = (await browser.get('api-keys?mode=live')).body.data as { id: string; status: string }[];
    expect(keys.map(({ id, status }) => [id, status])).toEqual([[key, 'active']]);
    expect((await browser.get(`webhook-endpoints/${live}`)).body.data).toMatchObject({
      url: receiver.url,
      event_types: null,
      signature_schemes,
      status: 'enabled',
    });
    expect((await browser.post(`api-keys/${sandboxKey}/revoke`)).status).toBe(200);
    await beOld(14);
    expect((await calls[0]!()).status).toBe(201);
    expect((await calls[3]!()).status).toBe(200);
    expect((await calls[8]!()).body.data.url).toBe(url);
    expect((await calls[9]!()).status).toBe(200);
  });

  it('does not include Sandbox actions and edits that keep the URL of a live endpoint', async () => {
    const sandbox = await endpointOf('sandbox');
    const live = await endpointOf('live');
    await beOld(16);
    const patch = (id: string, body: object): Promise<ApiAnswer> =>
      browser.call('PATCH', `webhook-endpoints/${id}`, { body });
    expect((await browser.post('api-keys', { mode: 'sandbox' })).status).toBe(201);
    expect((await patch(sandbox, { url: 'https://partner.example/elsewhere' })).status).toBe(200);
    const kept = {
      url: receiver.url,
      event_types: DOCUMENT_EVENT_TYPES,
      signature_schemes: ['document', 'standard'],
    };
    expect((await patch(live, { description: 'Orders', ...kept })).status).toBe(200);
    expect((await patch(live, { event_types: null })).status).toBe(200);
    expect((await patch(live, { event_types: ['*'] })).status).toBe(200);
    expectStepUp(await patch(live, { event_types: null }));
    expectStepUp(await patch(live, { event_types: EVENT_TYPES }));
    expect((await patch(sandbox, { event_types: ['order.issued'] })).status).toBe(200);
    expect((await browser.post(`webhook-endpoints/${sandbox}/disable`)).status).toBe(200);
    expect((await browser.call('DELETE', `webhook-endpoints/${sandbox}`, { body: {} })).status).toBe(200);
  });
});

describe('a manual send', () => {
  const bucketOf = async (name: string): Promise<void> => {
    const key = `${name}:${partner.id}`;
    // Further in the future than any bucket can be, so it counts as empty.
    await service.database.pool.query(
      `INSERT INTO rate_buckets (key, tat, t, burst, granted) VALUES ($1, $2, 1, 1, 1)`,
      [key, Math.round((Date.now() + 86_400_000) * 1_000)],
    );
  };

  it("is limited to sixty a minute across all of a partner's sessions and all ways to send", async () => {
    const endpoint = await endpointOf('sandbox');
    const second = await openPortal(service.admin, portal.process.portal!.url, partner.id);
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 150 }, (_, nth) =>
        (nth % 2 ? browser : second).post(`webhook-endpoints/${endpoint}/test`),
      ),
    );
    const elapsedS = Math.ceil((performance.now() - startedAt) / 1_000);
    const sent = answers.filter(({ status }) => status === 202);
    expect(sent.length).toBeGreaterThanOrEqual(60);
    expect(sent.length).toBeLessThanOrEqual(60 + elapsedS);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body.code).toBe('rate_limited');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it.each([
    ['resend', () => browser.post(`deliveries/${newId('dlv')}/resend`)],
    ['replay', async () => replay(await endpointOf('sandbox'))],
    ['test', async () => browser.post(`webhook-endpoints/${await endpointOf('sandbox')}/test`)],
  ])("returns 429 once the minute's limit is used up: a %s", async (_how, send) => {
    await bucketOf('portal-sends');
    const { status, body } = await send();
    expect([status, body.code]).toEqual([429, 'rate_limited']);
  });

  it('needs a step-up beyond a thousand resends an hour, like a replay of that size', async () => {
    await bucketOf('portal-resends');
    const resend = (): Promise<ApiAnswer> => browser.post(`deliveries/${newId('dlv')}/resend`);
    expect((await resend()).status).toBe(404);
    await beOld(16);
    expectStepUp(await resend());
  });
});

describe('a replay in an old session', () => {
  it('is refused from 1,001 deliveries on', async () => {
    const endpoint = await endpointOf('sandbox');
    await delivered(endpoint, 1_001);
    await beOld(16);
    expectStepUp(await replay(endpoint));
    expect((await replay(endpoint, { since: new Date().toISOString() })).status).toBe(202);
    await beOld(14);
    expect((await replay(endpoint)).status).toBe(202);
  });

  it('counts what the partner has replayed within the hour, at any endpoint', async () => {
    const [first, second] = [await endpointOf('sandbox'), await endpointOf('sandbox')];
    await delivered(first, 600);
    await delivered(second, 401);
    await beOld(16);
    expect((await replay(first)).body.data.total).toBe(600);
    expectStepUp(await replay(first));
    expectStepUp(await replay(second));
    await service.database.pool.query(
      `UPDATE webhook_backlog_jobs SET created_at = now() - interval '61 minutes' WHERE partner_id = $1`,
      [partner.id],
    );
    expect((await replay(second)).status).toBe(202);
  });

  it('cannot exceed the limit by starting at the same moment as others', async () => {
    const endpoint = await endpointOf('sandbox');
    await delivered(endpoint, 600);
    await beOld(16);
    const answers = await Promise.all(Array.from({ length: 8 }, () => replay(endpoint)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array<number>(7).fill(403)]);
  });

  it('waits for a replay whose deliveries are still being counted', async () => {
    const endpoint = await endpointOf('sandbox');
    await delivered(endpoint, 3);
    await beOld(16);
    expect((await replay(endpoint)).status).toBe(202);
    await service.database.pool.query(
      `UPDATE webhook_backlog_jobs SET step = 'count' WHERE partner_id = $1`,
      [partner.id],
    );
    expectStepUp(await replay(endpoint));
  });
});

describe('a dry run', () => {
  it('counts at most ten thousand', async () => {
    const endpoint = await endpointOf('sandbox');
    await delivered(endpoint, MAX_COUNTED + 7);
    expect((await replay(endpoint, { dry_run: true })).body.data.total).toBe(10_000);
    const path = `/internal/v1/partners/${partner.id}/webhook-endpoints/${endpoint}/replay`;
    const asked = await service.admin.post(path, { since: SINCE, dry_run: true });
    expect(asked.body.data.total).toBe(10_000);
  });

  it("uses one of the partner's list slots", async () => {
    const narrow = await startTestService({
      role: 'portal',
      database: service.database,
      env: { LISTS_PER_PARTNER: '1', DATABASE_POOL_WAIT_MS: '1500' },
    });
    const there = new PortalBrowser(narrow.process.portal!.url, browser.cookie);
    const path = `webhook-endpoints/${await endpointOf('sandbox')}/replay`;
    const lock = await service.database.pool.connect();
    try {
      await lock.query('BEGIN');
      await lock.query('LOCK TABLE webhook_deliveries');
      const dryRuns = [1, 2].map(() => there.post(path, { since: SINCE, dry_run: true }));
      const refused = await Promise.race(dryRuns);
      expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
      await lock.query('ROLLBACK');
      expect((await Promise.all(dryRuns)).map(({ status }) => status).sort()).toEqual([202, 429]);
    } finally {
      lock.release(true);
      await narrow.stop();
    }
  });
});
