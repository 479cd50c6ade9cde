import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EndpointLeases } from '../../src/webhooks/worker/endpoint-leases.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import {
  deliveryThat,
  endpointState,
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  recordEvents,
  registerEndpoint,
  type RegisteredEndpoint,
} from './support.js';

const acquire = vi.spyOn(EndpointLeases.prototype, 'acquire');
let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;

async function freshEndpoint(): Promise<void> {
  partner = await service.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
}

beforeAll(async () => {
  service = await startTestService({ env: { ...FAST, LEASE_MS: '60000', SWEEP_INTERVAL_MS: '250' } });
});
beforeEach(freshEndpoint);
afterEach(() => receiver.close());
afterAll(() => service.stop());

const post = (action: string, body?: unknown) => service.admin.post(`${endpoint.path}/${action}`, body);
const statuses = async (): Promise<string[]> =>
  (await listDeliveries(service, endpoint)).map((d) => d.status as string);
const idsIn = (): string[] =>
  receiver.received.map((webhook) => (JSON.parse(webhook.body) as { id: string }).id);

describe('disable', () => {
  it('holds pending and new deliveries, and sends nothing', async () => {
    expect((await post('disable')).body.data).toMatchObject({
      status: 'disabled',
      disabled_reason: 'manual',
    });
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    expect(await statuses()).toEqual(['held', 'held']);
    const [held] = await listDeliveries(service, endpoint, '&status=held');
    expect(held).toMatchObject({ status: 'held', next_attempt_at: null, attempt_count: 0 });
    expect(await listDeliveries(service, endpoint, '&status=pending')).toEqual([]);
    expect(await getDelivery(service, held!.id)).toMatchObject({ status: 'held', attempts: [] });
    // A later event of another endpoint is sent, which shows that the worker has skipped the held ones.
    const other = await service.createPartner();
    const passed = await registerEndpoint(service, other.id, { url: receiver.url });
    await recordEvent(service, { partnerId: other.id });
    await deliveryThat(service, passed, 'is delivered', (d) => d.status === 'delivered');
    expect(receiver.received).toHaveLength(1);
  });

  it('keeps its date, whatever is changed later, until the endpoint is enabled', async () => {
    const { disabled_at: since } = (await post('disable')).body.data as { disabled_at: string };
    expect(Math.abs(Date.parse(since) - Date.now())).toBeLessThan(60_000);
    const edited = await service.admin.call('PATCH', endpoint.path, { body: { description: 'later' } });
    expect(edited.body.data).toMatchObject({ description: 'later', disabled_at: since });
    expect((await post('rotate-secret')).body.data).toMatchObject({ disabled_at: since });
    expect((await post('enable')).body.data).toMatchObject({ disabled_at: null });
  });

  it('changes nothing when the endpoint is already disabled', async () => {
    const first = await post('disable');
    const second = await post('disable');
    expect(second.status).toBe(200);
    expect(second.body.data).toEqual(first.body.data);
    const audit = await service.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.disabled`,
    );
    expect(audit.body.data).toHaveLength(1);
  });
});

describe('enable', () => {
  it('releases held deliveries, oldest first, with their remaining attempts', async () => {
    // One delivery has failed at least twice before the switch, and its next attempt must continue the numbering.
    let fails = true;
    let isDisabled = false;
    const held: (() => void)[] = [];
    receiver.answer = (nth, _webhook, response) => {
      const answer = (): void => void response.writeHead(fails ? 500 : 200).end();
      // Hold responses, so that nothing changes between this check and the switch.
      if (nth < 2 || isDisabled) answer();
      else held.push(answer);
    };
    await recordEvent(service, { partnerId: partner.id });
    await eventually('two attempts', () => receiver.received.length >= 2);
    await post('disable');
    isDisabled = true;
    for (const answer of held) answer();
    const before = await eventually('what was under way is recorded', async () => {
      const { id } = (await listDeliveries(service, endpoint))[0]!;
      const { attempt_count } = await getDelivery(service, id);
      const { rows } = await service.database.pool.query(
        'SELECT 1 FROM webhook_deliveries WHERE id = $1 AND started_at IS NOT NULL',
        [id],
      );
      return rows.length === 0 && attempt_count === receiver.received.length && attempt_count;
    });
    fails = false;
    for (let i = 0; i < 5; i++) await recordEvent(service, { partnerId: partner.id });
    const owed = (await listDeliveries(service, endpoint)).reverse();
    expect(owed.every((delivery) => delivery.status === 'held')).toBe(true);

    expect((await post('enable')).body.data).toMatchObject({
      status: 'enabled',
      disabled_reason: null,
      consecutive_blocks: 0,
    });
    await eventually(
      'all delivered',
      async () => (await listDeliveries(service, endpoint, '&status=delivered')).length === 6,
    );
    expect(receiver.received).toHaveLength(before + 6);
    const first = await getDelivery(service, owed[0]!.id);
    expect(first).toMatchObject({ status: 'delivered', attempt_count: before + 1 });
    expect(first.attempts.at(-1)).toMatchObject({ number: before + 1, outcome: 'delivered' });
  });

  it('discards held deliveries on request, and audits it', async () => {
    await post('disable');
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    await post('enable', { held: 'discard' });
    expect(await statuses()).toEqual(['discarded', 'discarded']);
    const [discarded] = await listDeliveries(service, endpoint);
    const explained = await service.admin.get(`/internal/v1/deliveries/${discarded!.id}/explanation`);
    expect(explained.body.data).toMatchObject({ cause: 'not_tried', summary: 'The event was not sent.' });
    await recordEvent(service, { partnerId: partner.id });
    await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(receiver.received).toHaveLength(1);
    const audit = await service.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.enabled`,
    );
    expect(audit.body.data[0].details).toEqual({ held: 'discard', failed: 'leave', discarded: 2, resent: 0 });
  });

  it('resends failures since the last 2xx on request, as new deliveries', async () => {
    await recordEvent(service, { partnerId: partner.id });
    await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    await eventually(
      'both failed',
      async () => (await listDeliveries(service, endpoint, '&status=failed')).length === 2,
    );
    const failed = await listDeliveries(service, endpoint, '&status=failed');
    await post('disable');
    receiver.received.length = 0;
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    await post('enable', { failed: 'resend' });
    await eventually('both resent', () => receiver.received.length === 2);
    expect(idsIn().sort()).toEqual(failed.map((delivery) => delivery.event_id as string).sort());
    await eventually(
      'recorded',
      async () => (await listDeliveries(service, endpoint, '&status=delivered')).length === 3,
    );
    const resent = (await listDeliveries(service, endpoint)).filter((delivery) => delivery.kind === 'resend');
    expect(resent.map((delivery) => delivery.status)).toEqual(['delivered', 'delivered']);
    for (const { id } of failed) expect((await getDelivery(service, id)).status).toBe('failed');

    // After that 2xx, nothing is left to resend.
    await post('disable');
    await post('enable', { failed: 'resend' });
    expect(await listDeliveries(service, endpoint)).toHaveLength(5);
  });

  it('changes nothing on an enabled endpoint, and does not end a block', async () => {
    const before = await endpointState(service, endpoint);
    expect((await post('enable', { held: 'discard' })).body.data).toEqual(before);
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvent(service, { partnerId: partner.id });
    await eventually(
      'a block',
      async () => (await endpointState(service, endpoint)).consecutive_blocks === 1,
    );
    // The block outlasts this test, however slow the machine is.
    await service.database.pool.query(
      `UPDATE webhook_endpoints SET blocked_until = now() + interval '1 minute' WHERE id = $1`,
      [endpoint.id],
    );
    const blocked = await endpointState(service, endpoint);
    expect(blocked.status).toBe('blocked');
    expect((await post('enable')).body.data).toEqual(blocked);
    await service.database.pool.query('UPDATE webhook_endpoints SET blocked_until = now() WHERE id = $1', [
      endpoint.id,
    ]);
    const counted = await endpointState(service, endpoint);
    expect(counted).toMatchObject({ status: 'enabled', consecutive_blocks: 1 });
    expect((await post('enable', { held: 'discard', failed: 'resend' })).body.data).toEqual(counted);
    expect(await listDeliveries(service, endpoint)).toHaveLength(1);
    const audit = await service.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.enabled`,
    );
    expect(audit.body.data).toEqual([]);
  });

  it.each([[{ held: 'drop' }], [{ failed: true }], [{ hold: 'release' }]])('refuses %j', async (body) => {
    const answer = await post('enable', body);
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
  });
});

describe('deletion', () => {
  it('discards undelivered events, keeps the log, and makes the endpoint a 404', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await post('disable');
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    const owed = await listDeliveries(service, endpoint);
    const answer = await service.admin.call('DELETE', endpoint.path);
    expect([answer.status, answer.body.data]).toEqual([200, { id: endpoint.id, deleted: true }]);
    expect(await statuses()).toEqual(['discarded', 'discarded']);
    expect((await getDelivery(service, owed[0]!.id))['status']).toBe('discarded');
    expect((await service.admin.call('DELETE', endpoint.path)).status).toBe(404);
    expect((await service.admin.get(endpoint.path)).status).toBe(404);
    await recordEvent(service, { partnerId: partner.id });
    expect(await statuses()).toHaveLength(2);
  });

  it('still logs the attempt in progress, and counts it when it is a 2xx', async () => {
    let finish = (): void => undefined;
    receiver.answer = (_nth, _webhook, response) => {
      finish = () => void response.writeHead(200).end();
    };
    await recordEvent(service, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    await service.admin.call('DELETE', endpoint.path);
    expect(await statuses()).toEqual(['discarded']);
    finish();
    await eventually('delivered after all', async () => (await statuses())[0] === 'delivered');
  });

  it('leaves nothing pending when events are recorded at the same moment', async () => {
    for (let round = 0; round < 5; round++) {
      const victim = await registerEndpoint(service, partner.id, { url: receiver.url });
      const recording = Array.from({ length: 20 }, () => recordEvent(service, { partnerId: partner.id }));
      await service.admin.call('DELETE', victim.path);
      await Promise.all(recording);
      await eventually('nothing is owed', async () => {
        const { rows } = await service.database.pool.query(
          `SELECT count(*)::int AS owed FROM webhook_deliveries
           WHERE endpoint_id = $1 AND status = 'pending'`,
          [victim.id],
        );
        return rows[0].owed === 0;
      });
    }
  });
});

async function deliveriesThat(kind: string, status: string): Promise<string[]> {
  const all = await listDeliveries(service, endpoint, `&status=${status}`);
  return all.filter((delivery) => delivery.kind === kind).map((delivery) => delivery.event_id as string);
}

async function passTest(): Promise<void> {
  expect((await post('test')).status).toBeLessThan(300);
  await eventually(
    'the test got its 2xx',
    async () => (await deliveriesThat('test', 'delivered')).length === 1,
  );
}

function slowStartWindow(): number | null | undefined {
  const leases = acquire.mock.contexts.at(-1) as EndpointLeases;
  return leases.get(endpoint.id)?.window.width;
}

describe('a test webhook with a 2xx response', () => {
  it('does not count as the last 2xx for `failed: resend`: earlier failures are resent', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    const failed = await eventually('both failed', async () => {
      const found = await deliveriesThat('event', 'failed');
      return found.length === 2 && found;
    });
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    await eventually(
      'the block is over',
      async () => (await endpointState(service, endpoint)).status === 'enabled',
    );
    await passTest();
    await post('disable');
    await post('enable', { failed: 'resend' });
    const resent = await eventually('both are resent', async () => {
      const found = await deliveriesThat('resend', 'delivered');
      return found.length === 2 && found;
    });
    expect(resent.sort()).toEqual(failed.toSorted());
  });

  it('does not widen the slow-start window, while an event does', async () => {
    await post('disable');
    await post('enable');
    await passTest();
    expect(slowStartWindow()).toBe(1);
    await recordEvent(service, { partnerId: partner.id });
    await eventually('an event widens it', () => slowStartWindow() === 2);
  });
});

describe('a delivery that is discarded during its sixth attempt (D32)', () => {
  const ATTEMPTS = 6;
  let quiet: TestService;
  let shared: TestService;
  /** The last attempt, which waits for its response. */
  let last: ServerResponse | null;

  beforeAll(async () => {
    // Without a sweep, the delivery is not marked as discarded yet, and the recorder must detect it itself.
    quiet = await startTestService({ env: { ...FAST, SWEEP_INTERVAL_MS: '60000' } });
    [shared, service] = [service, quiet];
  });
  beforeEach(async () => {
    last = null;
    receiver.answer = (nth, _webhook, response) => {
      if (nth < ATTEMPTS - 1) response.writeHead(500).end();
      else last = response;
    };
    await recordEvent(service, { partnerId: partner.id });
    await eventually('the last attempt is under way', () => last);
    await post('disable', {});
    await post('enable', { held: 'discard' });
  });
  afterAll(async () => {
    await quiet.stop();
    service = shared;
  });

  async function afterTheAnswer(status: number): ReturnType<typeof getDelivery> {
    last!.writeHead(status).end();
    const [{ id } = { id: '' }] = await listDeliveries(service, endpoint);
    return eventually('it is recorded', async () => {
      const delivery = await getDelivery(service, id);
      return delivery.attempt_count === ATTEMPTS && delivery;
    });
  }

  it('stays discarded when that attempt fails, and blocks nothing', async () => {
    const delivery = await afterTheAnswer(500);
    expect(delivery.attempts.at(-1)).toMatchObject({ number: ATTEMPTS, outcome: 'failed', status_code: 500 });
    expect(delivery).toMatchObject({ status: 'discarded', next_attempt_at: null });
    const { rows } = await service.database.pool.query(
      'SELECT status, failed_at FROM webhook_deliveries WHERE id = $1',
      [delivery.id],
    );
    expect(rows[0]).toEqual({ status: 'discarded', failed_at: null });
    expect(await endpointState(service, endpoint)).toMatchObject({
      status: 'enabled',
      consecutive_blocks: 0,
      blocked_until: null,
    });
    const alerts = await service.admin.get(`/internal/v1/alerts?subject_id=${endpoint.id}`);
    expect(alerts.body.data).toEqual([]);
  });

  it('becomes delivered when that attempt gets a 2xx', async () => {
    expect(await afterTheAnswer(200)).toMatchObject({ status: 'delivered' });
  });
});
