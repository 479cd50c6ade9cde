import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { postAtOnce } from '../harness/order-steps.js';
import {
  endpointState,
  FAST,
  listDeliveries,
  recordEvents,
  type RegisteredEndpoint,
  registerEndpoint,
} from './support.js';

const SINCE = '2026-01-01T00:00:00Z';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;

beforeEach(async () => {
  service = await startTestService({ env: { ...FAST, WEBHOOK_REPLAY_PER_SECOND: '40' } });
  receiver = await startReceiver();
  partner = await service.createPartner('Replayer');
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterEach(async () => {
  await service.stop();
  await receiver.close();
});

async function deliverEvents(count: number, type?: 'esim.expired'): Promise<void> {
  const before = receiver.received.length;
  const events = Array.from({ length: count }, () => ({ partnerId: partner.id, ...(type ? { type } : {}) }));
  await recordEvents(service, events);
  await eventually('they are delivered', () => Promise.resolve(receiver.received.length === before + count));
  await eventually(
    'and recorded',
    async () => (await listDeliveries(service, endpoint, '&status=pending')).length === 0,
  );
}

const replay = (body: object): ReturnType<TestService['admin']['post']> =>
  service.admin.post(`${endpoint.path}/replay`, body);

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the body is checked field by field
async function trackedReplay(id: string): Promise<any> {
  return (await service.admin.get(`/internal/v1/replays/${id}`)).body.data;
}

describe('a replay', () => {
  it('sends the same event ids and bytes again as new deliveries, oldest first, and is tracked to its end', async () => {
    await deliverEvents(3);
    const originals = receiver.received.map(({ body }) => body.toString());
    const originalIds = receiver.received.map(({ headers }) => headers['x-service-delivery']);
    const started = await replay({ since: SINCE });
    expect(started.status).toBe(202);
    expect(started.body.data).toMatchObject({ status: 'running', dry_run: false, total: 3, created: 0 });
    const id = started.body.data.id as string;
    expect(id).toMatch(/^rpl_/);
    expect(started.headers.get('location')).toBe(`/internal/v1/replays/${id}`);
    const ended = await eventually('it is completed', async () => {
      const now = await trackedReplay(id);
      return now.status === 'completed' && now;
    });
    expect(ended).toMatchObject({ total: 3, created: 3, delivered: 3, failed: 0, pending: 0, discarded: 0 });
    const again = receiver.received.slice(3);
    expect(again.map(({ body }) => body.toString()).sort()).toEqual(originals.toSorted());
    for (const { headers } of again) expect(originalIds).not.toContain(headers['x-service-delivery']);
    const kinds = (await listDeliveries(service, endpoint)).map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(['event', 'event', 'event', 'replay', 'replay', 'replay']);
  });

  it('with dry_run counts, stores nothing and sends nothing', async () => {
    await deliverEvents(2);
    await deliverEvents(1, 'esim.expired');
    const counted = async (body: object): Promise<unknown> =>
      (await replay({ since: SINCE, dry_run: true, ...body })).body.data;
    expect(await counted({})).toMatchObject({ id: null, dry_run: true, status: null, total: 3 });
    expect(await counted({ event_types: ['esim.expired'] })).toMatchObject({ total: 1 });
    expect(await counted({ statuses: ['failed'] })).toMatchObject({ total: 0 });
    expect(await counted({ since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' })).toMatchObject({
      total: 0,
    });
    const { rows } = await service.database.pool.query('SELECT count(*)::int AS n FROM webhook_backlog_jobs');
    expect(rows[0]).toEqual({ n: 0 });
    expect(receiver.received).toHaveLength(3);
  });

  it('repeats a replay with the same Idempotency-Key only once', async () => {
    await deliverEvents(2);
    const [first, second] = await postAtOnce(service.admin, `${endpoint.path}/replay`, { since: SINCE }, 2);
    expect(first!.body.data.id).toBe(second!.body.data.id);
    await eventually(
      'completed',
      async () => (await trackedReplay(first!.body.data.id)).status === 'completed',
    );
    expect(receiver.received).toHaveLength(4);
  });

  it('keeps to its pace, is canceled in the middle, and then sends nothing more', async () => {
    await deliverEvents(120);
    const startedAt = Date.now();
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await eventually('some are made', async () => (await trackedReplay(id)).created >= 20);
    const canceled = (await service.admin.post(`/internal/v1/replays/${id}/cancel`, {})).body.data;
    const elapsedMs = Date.now() - startedAt;
    expect(canceled.status).toBe('canceled');
    // 40 a second in steps of half a second, the first one at once.
    expect(canceled.created).toBeLessThanOrEqual(40 * (elapsedMs / 1_000) + 40);
    expect(canceled.created).toBeLessThan(120);
    expect(canceled.pending).toBe(0);
    const twice = await service.admin.post(`/internal/v1/replays/${id}/cancel`, {});
    expect(twice.status).toBe(200);
    await recordEvents(service, [{ partnerId: partner.id }]);
    await eventually('a later event passes', () => Promise.resolve(receiver.received.length > 120));
    expect((await trackedReplay(id)).created).toBe(canceled.created);
  });

  it('is no faster together with others of its partner', async () => {
    await deliverEvents(20);
    const before = receiver.received.length;
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 10 }, () => replay({ since: SINCE })));
    await eventually('all are sent', () => Promise.resolve(receiver.received.length === before + 200));
    // The first second's worth comes at once. Each at its own pace, they would take a second.
    expect(performance.now() - startedAt).toBeGreaterThan(((200 - 2 * 40) / 40) * 1_000);
  });

  it('of a few events ends before a large one of its partner that started earlier (D34)', async () => {
    await deliverEvents(160);
    await deliverEvents(20, 'esim.expired');
    const large = (await replay({ since: SINCE })).body.data.id as string;
    const small = (await replay({ since: SINCE, event_types: ['esim.expired'] })).body.data.id as string;
    const endOf = (id: string) =>
      eventually('it is completed', async () => (await trackedReplay(id)).ended_at as string | null);
    expect(Date.parse(await endOf(small))).toBeLessThan(Date.parse(await endOf(large)));
  });

  it('waits while the endpoint is disabled, and goes on when it is enabled', async () => {
    await deliverEvents(2);
    await service.admin.post(`${endpoint.path}/disable`, {});
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await service.admin.post(`${endpoint.path}/enable`, {});
    await eventually('completed', async () => (await trackedReplay(id)).status === 'completed');
    expect(receiver.received).toHaveLength(4);
  });

  it('ends with its endpoint', async () => {
    await deliverEvents(2);
    await service.admin.post(`${endpoint.path}/disable`, {});
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await service.admin.call('DELETE', endpoint.path);
    await eventually('canceled', async () => (await trackedReplay(id)).status === 'canceled');
  });

  it.each([
    ['without since', {}],
    ['with an until before since', { since: SINCE, until: '2025-01-01T00:00:00Z' }],
    ['of an unknown status', { since: SINCE, statuses: ['pending'] }],
    ['of no types', { since: SINCE, event_types: [] }],
    ['with an unknown field', { since: SINCE, rate: 5 }],
  ])('%s is 400 and starts nothing', async (_what, body) => {
    const answer = await replay(body);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('validation_failed');
  });

  it('of an unknown endpoint, or an unknown replay, is 404; a completed one cannot be canceled', async () => {
    const other = `/internal/v1/partners/${partner.id}/webhook-endpoints/whe_01KAEXAMPLE000000000000000`;
    expect((await service.admin.post(`${other}/replay`, { since: SINCE })).status).toBe(404);
    expect((await service.admin.get('/internal/v1/replays/rpl_01KAEXAMPLE000000000000000')).status).toBe(404);
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await eventually('completed', async () => (await trackedReplay(id)).status === 'completed');
    const refused = await service.admin.post(`/internal/v1/replays/${id}/cancel`, {});
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
  });
});

describe('alerts and metrics', () => {
  const metric = async (name: string, labels: string): Promise<number | undefined> => {
    const text = await (await fetch(`${service.process.admin!.url}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${name}{`) && each.includes(labels));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };

  it('tell of every block and of the disable once, oldest first', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvents(
      service,
      Array.from({ length: 12 }, () => ({ partnerId: partner.id })),
    );
    for (let i = 0; i < 5; i++) {
      await eventually('blocked or disabled', async () => {
        const { consecutive_blocks } = await endpointState(service, endpoint);
        return consecutive_blocks >= i + 1;
      });
      await recordEvents(service, [{ partnerId: partner.id }]);
    }
    const { body } = await service.admin.get(`/internal/v1/alerts?subject_id=${endpoint.id}`);
    const types = (body.data as { type: string }[]).map(({ type }) => type);
    expect(types).toEqual([...Array<string>(4).fill('endpoint.blocked'), 'endpoint.disabled']);
    expect(body.data.map((alert: { details: object }) => alert.details)).toEqual(
      [1, 2, 3, 4, 5].map((consecutive_blocks) => ({ consecutive_blocks })),
    );
    const page = await service.admin.get(`/internal/v1/alerts?subject_id=${endpoint.id}&limit=2`);
    const rest = await service.admin.get(
      `/internal/v1/alerts?subject_id=${endpoint.id}&limit=2&cursor=${page.body.next_cursor}`,
    );
    expect(rest.body.data[0].details).toEqual({ consecutive_blocks: 3 });
    expect(await metric('webhook_endpoint_blocks_total', '')).toBe(5);
    expect(await metric('webhook_endpoint_disables_total', '')).toBe(1);
  });

  it('count first deliveries by status so that they add up to events x endpoints (D33)', async () => {
    const second = await registerEndpoint(service, partner.id, {
      url: receiver.url,
      event_types: ['esim.expired'],
    });
    await deliverEvents(2);
    await service.admin.post(`${second.path}/disable`, {});
    await recordEvents(service, [{ partnerId: partner.id, type: 'esim.expired' }]);
    await replay({ since: SINCE });
    await service.admin.post(`${endpoint.path}/test`, {});
    await eventually('all is sent', async () =>
      (await listDeliveries(service, endpoint, '&status=pending')).length === 0 ? true : null,
    );
    await eventually('the metrics say so', async () => {
      const delivered = await metric('webhook_deliveries', 'kind="event",status="delivered"');
      const held = await metric('webhook_deliveries', 'kind="event",status="held"');
      return delivered === 3 && held === 1;
    });
    // Three events; two had one endpoint, one had two.
    const text = await (await fetch(`${service.process.admin!.url}/metrics`)).text();
    const first = text.split('\n').filter((line) => line.startsWith('webhook_deliveries{kind="event"'));
    expect(first.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)).toBe(4);
  });
});
