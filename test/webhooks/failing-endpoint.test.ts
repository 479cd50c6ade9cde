import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { openPortal } from '../harness/portal.js';
import {
  endpointState,
  listDeliveries,
  recordEvent,
  type RegisteredEndpoint,
  registerEndpoint,
} from './support.js';

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let attempts = 0;

beforeAll(async () => {
  // One retry, far away: each event is one attempt here.
  service = await startTestService({ env: { WEBHOOK_RETRY_DELAYS_MS: '600000' } });
  partner = await service.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

/** Sends one event to a receiver that responds with `status`, and waits until its attempt is recorded. */
async function attempt(status: number): Promise<void> {
  receiver.answer = (_nth, _webhook, response) => void response.writeHead(status).end();
  await recordEvent(service, { partnerId: partner.id });
  attempts++;
  await eventually('the attempt is recorded', async () => {
    const deliveries = await listDeliveries(service, endpoint);
    return deliveries.filter(({ last_attempt: last }) => last !== null).length === attempts;
  });
}

it('fails from the first failed attempt after the last success, with the cause of that attempt', async () => {
  const unused = await endpointState(service, endpoint);
  expect(unused).toMatchObject({
    failing_since: null,
    failing_cause: null,
    attempts_24h: { succeeded: 0, failed: 0 },
    deliveries_24h: { delivered: 0, failed: 0, pending: 0 },
  });

  await attempt(200);
  expect(await endpointState(service, endpoint)).toMatchObject({ failing_since: null, failing_cause: null });

  await attempt(404);
  const first = await endpointState(service, endpoint);
  expect(first).toMatchObject({ status: 'enabled', failing_cause: 'not_found' });
  expect(Date.parse(first.failing_since!)).toBeGreaterThanOrEqual(Date.parse(first.last_success_at!));

  await attempt(500);
  const second = await endpointState(service, endpoint);
  const { failing_since, failing_cause } = first;
  expect(second).toMatchObject({ failing_since, failing_cause });
});

it('counts attempts and deliveries apart', async () => {
  expect(await endpointState(service, endpoint)).toMatchObject({
    attempts_24h: { succeeded: 1, failed: 2 },
    deliveries_24h: { delivered: 1, failed: 0, pending: 2 },
  });
});

it('is explained while it is enabled', async () => {
  const browser = await openPortal(service.admin, service.process.portal!.url, partner.id);
  const { body } = await browser.get(`webhook-endpoints/${endpoint.id}/explanation`);
  expect(body.data).toMatchObject({ cause: 'server_error', owner: 'you' });
  expect(body.data.evidence.join(' ')).toContain('Attempts have failed since');
});

it('is not changed by a test event', async () => {
  const before = await endpointState(service, endpoint);
  receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
  const sent = await service.admin.post(`${endpoint.path}/test`);
  attempts++;
  await eventually('the test is delivered', async () => {
    const deliveries = await listDeliveries(service, endpoint);
    return deliveries.find(({ id }) => id === sent.body.data.id)?.status === 'delivered';
  });
  expect(await endpointState(service, endpoint)).toEqual(before);
});

it('ends with the next success, and begins again with the next failure', async () => {
  const { failing_since: before } = await endpointState(service, endpoint);
  await attempt(200);
  expect(await endpointState(service, endpoint)).toMatchObject({ failing_since: null, failing_cause: null });
  await attempt(503);
  const again = await endpointState(service, endpoint);
  expect(again.failing_cause).toBe('server_error');
  expect(Date.parse(again.failing_since!)).toBeGreaterThan(Date.parse(before!));
});

it('remembers the first failure in later quarter-hours', async () => {
  const before = await endpointState(service, endpoint);
  // As if everything so far had happened an hour ago.
  await service.database.pool.query(
    `UPDATE webhook_endpoint_stats SET at = at - interval '1 hour', failing_since = failing_since - interval '1 hour'
     WHERE endpoint_id = $1`,
    [endpoint.id],
  );
  await attempt(404);
  const after = await endpointState(service, endpoint);
  expect(after.failing_cause).toBe('server_error');
  expect(Date.parse(after.failing_since!)).toBe(Date.parse(before.failing_since!) - 3_600_000);
});
