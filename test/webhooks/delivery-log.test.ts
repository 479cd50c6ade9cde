import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { listDeliveries, recordEvent, recordEvents, registerEndpoint } from './support.js';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ role: 'admin', env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' } });
});
beforeEach(async () => {
  const answer = await service.admin.post('/internal/v1/partners', { name: 'Test Travel' });
  partner = { id: answer.body.data.id } as TestPartner;
});
afterAll(() => service.stop());

const URL = 'https://partner.example/hook';

describe('the delivery log', () => {
  it('filters by status, type, event and time, and pages without losing or repeating', async () => {
    const endpoint = await registerEndpoint(service, partner.id, { url: URL });
    await recordEvents(
      service,
      Array.from({ length: 7 }, () => ({ partnerId: partner.id })),
    );
    await recordEvent(service, { partnerId: partner.id, type: 'esim.expired' });
    const all = await listDeliveries(service, endpoint);
    expect(all).toHaveLength(8);
    expect(all[0]).toEqual({
      id: expect.stringMatching(/^dlv_/),
      endpoint_id: endpoint.id,
      event_id: expect.stringMatching(/^evt_/),
      event_type: 'esim.expired',
      kind: 'event',
      status: 'pending',
      attempt_count: 0,
      next_attempt_at: expect.any(String),
      created_at: expect.any(String),
      delivered_at: null,
      last_attempt: null,
      current_attempt: null,
    });
    expect(await listDeliveries(service, endpoint, '&event_type=esim.expired')).toEqual([all[0]]);
    expect(await listDeliveries(service, endpoint, `&event_id=${all[3]!.event_id}`)).toEqual([all[3]]);
    expect(await listDeliveries(service, endpoint, '&status=held')).toEqual([]);
    expect(await listDeliveries(service, endpoint, '&status=pending')).toHaveLength(8);
    const newestAt = encodeURIComponent(all[0]!.created_at);
    expect(await listDeliveries(service, endpoint, `&created_after=${newestAt}`)).toEqual([all[0]]);
    expect(await listDeliveries(service, endpoint, `&created_before=${newestAt}`)).toEqual(all.slice(1));

    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const { body } = await service.admin.get(`${endpoint.path}/deliveries?limit=3&status=pending${cursor}`);
      seen.push(...(body.data as { id: string }[]).map((delivery) => delivery.id));
      if (!body.has_more) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(seen).toEqual(all.map((delivery) => delivery.id));
    for (const query of [
      'status=lost',
      'event_type=x',
      'event_id=1',
      'created_after=yesterday',
      'x=1',
      'limit=0',
    ]) {
      expect((await service.admin.get(`${endpoint.path}/deliveries?${query}`)).status, query).toBe(400);
    }
  });
});

describe('in development', () => {
  it('takes loopback over http, and a PATCH applies from the next attempt on', async () => {
    const [first, second] = await Promise.all([startReceiver(), startReceiver()]);
    const development = await startTestService({ env: { WEBHOOK_RETRY_DELAYS_MS: '4000,400,400,400,400' } });
    try {
      const someone = await development.createPartner();
      first.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
      const endpoint = await registerEndpoint(development, someone.id, { url: first.url });
      await recordEvent(development, { partnerId: someone.id });
      await eventually('the first attempt', () => first.received.length === 1);
      // Before the new address: whatever arrives there is signed with both.
      const rotated = await development.admin.post(`${endpoint.path}/rotate-secret`, { grace_seconds: 60 });
      await development.admin.call('PATCH', endpoint.path, { body: { url: second.url } });
      await eventually('the second attempt', () => second.received.length === 1);
      expect(second.received[0]!.headers['x-service-delivery']).toBe(
        first.received[0]!.headers['x-service-delivery'],
      );
      expect(String(second.received[0]!.headers['x-service-signature']).match(/v1=/g)).toHaveLength(2);
      expect(rotated.status).toBe(200);
    } finally {
      await development.stop();
      await Promise.all([first.close(), second.close()]);
    }
  });
});
