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
  endpointState,
  FAST,
  listDeliveries,
  recordEvent,
  recordEvents,
  type RegisteredEndpoint,
  registerEndpoint,
} from './support.js';

const acquire = vi.spyOn(EndpointLeases.prototype, 'acquire');
let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;

beforeAll(async () => {
  service = await startTestService({ env: FAST });
});
beforeEach(async () => {
  partner = await service.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterEach(() => receiver.close());
afterAll(() => service.stop());

const post = (action: string, body: object = {}) => service.admin.post(`${endpoint.path}/${action}`, body);

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

describe('a test webhook that got a 2xx', () => {
  it('is not the last 2xx of `failed: resend`: what failed before it is resent', async () => {
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

  it('does not widen the window of slow start; one of an event does', async () => {
    await post('disable');
    await post('enable');
    await passTest();
    expect(slowStartWindow()).toBe(1);
    await recordEvent(service, { partnerId: partner.id });
    await eventually('an event widens it', () => slowStartWindow() === 2);
  });
});
