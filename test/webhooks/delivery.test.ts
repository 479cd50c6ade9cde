import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import { outputOf } from '../docs/program.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import {
  eventually,
  PATIENCE_MS,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { closeReceivers, receiverThatAnswers } from './answering-receiver.js';
import {
  deliveryThat,
  endpointState,
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  recordEvents,
  registerEndpoint,
} from './support.js';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ env: FAST });
});
beforeAll(async () => {
  partner = await service.createPartner();
});
afterEach(async () => {
  partner = await service.createPartner();
  await closeReceivers();
});
afterAll(() => service.stop());

function timestampOf(webhook: ReceivedWebhook): number {
  return Number(/^t=(\d+),/.exec(String(webhook.headers['x-service-signature']))?.[1]);
}

/** A receiver written in Python: parses the header, checks the signature and the age of `t`. */
const PYTHON_RECEIVER = `
import sys, hmac, hashlib, time
header, secret = sys.argv[1], sys.argv[2].encode()
body = sys.stdin.buffer.read()
parts = [p.split('=', 1) for p in header.split(',')]
t = [v for k, v in parts if k == 't'][0]
expected = hmac.new(secret, t.encode() + b'.' + body, hashlib.sha256).hexdigest()
ok = any(hmac.compare_digest(expected, v) for k, v in parts if k == 'v1') and abs(time.time() - int(t)) <= 300
print('valid' if ok else 'invalid')
`;

/** Beside the service: one that stands still for seconds cannot tell its callers in time that it hangs up on an idle connection. */
async function pythonSays(webhook: ReceivedWebhook, secret: string): Promise<string> {
  const header = String(webhook.headers['x-service-signature']);
  const command = ['python3', '-c', PYTHON_RECEIVER, header, secret] as const;
  return (await outputOf(command, PROJECT_ROOT, webhook.body, PATIENCE_MS)).trim();
}

describe('a delivery', () => {
  it('is one POST of the stored bytes with the documented headers and nothing else', async () => {
    const receiver = await receiverThatAnswers(200);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    const delivery = await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');

    expect(receiver.received).toHaveLength(1);
    const [webhook] = receiver.received as [ReceivedWebhook];
    const feed = await partner.sandbox.get('/v1/events');
    expect(feed.text).toContain(webhook.body);
    expect(JSON.parse(webhook.body)).toEqual(feed.body.data[0]);
    expect(Object.keys(JSON.parse(webhook.body) as object)).toEqual(['id', 'type', 'created_at', 'data']);

    const { host, connection, 'content-length': length, ...sent } = webhook.headers;
    expect([host, connection, length]).toEqual([
      expect.any(String),
      'keep-alive',
      String(webhook.body.length),
    ]);
    expect(sent).toEqual({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^partner-esim-service/),
      'x-service-event': 'esim.activated',
      'x-service-delivery': delivery.id,
      'x-service-signature': expect.stringMatching(/^t=\d{10},v1=[0-9a-f]{64}$/),
    });
    expect(delivery).toMatchObject({
      id: expect.stringMatching(/^dlv_[0-9A-HJKMNP-TV-Z]{26}$/),
      endpoint_id: endpoint.id,
      event_id: feed.body.data[0].id,
      event_type: 'esim.activated',
      kind: 'event',
      attempt_count: 1,
      next_attempt_at: null,
      attempts: [
        { number: 1, outcome: 'delivered', status_code: 200, error: null, response_body: 'answer 0' },
      ],
    });
    expect(Date.parse(String(delivery.delivered_at))).toBeGreaterThanOrEqual(Date.parse(delivery.created_at));
  });

  it('has a signature that another implementation verifies, and that any change breaks', async () => {
    const receiver = await receiverThatAnswers(200);
    const { secret } = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    const webhook = await eventually('a webhook', () => receiver.received[0]);
    expect(await pythonSays(webhook, secret)).toBe('valid');
    expect(await pythonSays({ ...webhook, body: `${webhook.body} ` }, secret)).toBe('invalid');
    expect(await pythonSays(webhook, secret.replace('whsec_', ''))).toBe('invalid');
    const header = String(webhook.headers['x-service-signature']);
    expect(verifyWebhookSignature({ header, body: webhook.body, secret })).toBe(true);
  });

  it('is tried again on the schedule, counted from the end of the attempt before, with one id and a fresh t', async () => {
    const other = await startTestService({
      env: { ...FAST, WEBHOOK_RETRY_DELAYS_MS: '300,1200,600,100,100' },
    });
    const receiver = await startReceiver();
    try {
      const someone = await other.createPartner();
      // The first answer takes 400 ms: the schedule counts from its end.
      receiver.answer = (nth, _webhook, response) => {
        setTimeout(() => response.writeHead(nth < 3 ? 500 : 204).end(), nth === 0 ? 400 : 0);
      };
      const endpoint = await registerEndpoint(other, someone.id, { url: receiver.url });
      await recordEvent(other, { partnerId: someone.id });
      const delivery = await deliveryThat(other, endpoint, 'is delivered', (d) => d.status === 'delivered');

      const at = receiver.received.map((webhook) => webhook.receivedAtMs);
      const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
      // How late a busy machine is says nothing; that the timer, and no sweep, brings them is tested by delayed-jobs.
      for (const [index, expected] of [700, 1_200, 600].entries())
        expect(gaps[index]).toBeGreaterThanOrEqual(expected - 5);
      expect(new Set(receiver.received.map((webhook) => webhook.headers['x-service-delivery']))).toEqual(
        new Set([delivery.id]),
      );
      expect(new Set(receiver.received.map((webhook) => webhook.body)).size).toBe(1);
      expect(timestampOf(receiver.received[2]!)).toBeGreaterThan(timestampOf(receiver.received[0]!));
      for (const webhook of receiver.received)
        expect(await pythonSays(webhook, endpoint.secret)).toBe('valid');
      expect(
        delivery.attempts.map((attempt) => [attempt.number, attempt.outcome, attempt.status_code]),
      ).toEqual([
        [1, 'failed', 500],
        [2, 'failed', 500],
        [3, 'failed', 500],
        [4, 'delivered', 204],
      ]);
      expect(delivery.attempts[0]?.latency_ms).toBeGreaterThanOrEqual(395);
      expect(delivery.attempts[0]?.latency_ms).toBeLessThan(5_000);
      expect((await endpointState(other, endpoint)).status).toBe('enabled');
    } finally {
      await other.stop();
      await receiver.close();
    }
  });

  it('goes to the endpoints of its partner, mode and event types only, in the transaction of the event', async () => {
    const stranger = await service.createPartner();
    const receiver = await receiverThatAnswers(200);
    const { url } = receiver;
    const all = await registerEndpoint(service, partner.id, { url });
    const typed = await registerEndpoint(service, partner.id, { url, event_types: ['esim.expired'] });
    const live = await registerEndpoint(service, partner.id, { url, mode: 'live' });
    const foreign = await registerEndpoint(service, stranger.id, { url });
    const deleted = await registerEndpoint(service, partner.id, { url });
    await service.admin.call('DELETE', deleted.path);
    const failing = recordEvents(service, [{ partnerId: partner.id }], () =>
      Promise.reject(new Error('rolled back')),
    );
    await expect(failing).rejects.toThrow('rolled back');
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id, type: 'esim.expired' }]);

    await eventually('three webhooks', () => receiver.received.length >= 3);
    expect(await listDeliveries(service, all)).toHaveLength(2);
    expect((await listDeliveries(service, typed)).map((delivery) => delivery.event_type)).toEqual([
      'esim.expired',
    ]);
    for (const endpoint of [live, foreign, deleted])
      expect(await listDeliveries(service, endpoint)).toEqual([]);
    expect(receiver.received).toHaveLength(3);
  });
});

describe('an attempt that waits for its answer', () => {
  it('is shown with its number and start, in the delivery and in the log, until it has ended', async () => {
    let answer = (): void => undefined;
    const receiver = await receiverThatAnswers();
    receiver.answer = (nth, _webhook, response) => {
      if (nth === 0) response.writeHead(500).end();
      else answer = () => void response.writeHead(200).end();
    };
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    await eventually('the second attempt is under way', () => receiver.received.length === 2);
    const [listed] = await listDeliveries(service, endpoint);
    const shown = await getDelivery(service, listed!.id);
    for (const delivery of [listed!, shown]) {
      expect(delivery).toMatchObject({ status: 'pending', attempt_count: 1, current_attempt: { number: 2 } });
      const startedAt = Date.parse(delivery.current_attempt!.started_at);
      expect(startedAt).toBeGreaterThan(Date.parse(String(delivery.last_attempt!.started_at)));
    }
    answer();
    const ended = await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(ended).toMatchObject({ attempt_count: 2, current_attempt: null });
  });
});

describe('webhook.test', () => {
  it('is one attempt that changes nothing and is in no feed', async () => {
    const receiver = await receiverThatAnswers(500);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    const answer = await service.admin.post(`${endpoint.path}/test`);
    expect(answer.status, answer.text).toBe(202);
    expect(answer.body.data).toMatchObject({
      kind: 'test',
      status: 'pending',
      event_id: null,
      event_type: 'webhook.test',
    });
    const delivery = await deliveryThat(service, endpoint, 'failed', (d) => d.status === 'failed');
    expect(delivery).toMatchObject({ id: answer.body.data.id, attempt_count: 1 });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(receiver.received).toHaveLength(1);
    const [webhook] = receiver.received as [ReceivedWebhook];
    expect(webhook.headers['x-service-event']).toBe('webhook.test');
    expect(JSON.parse(webhook.body)).toMatchObject({
      id: expect.stringMatching(/^evt_/),
      type: 'webhook.test',
    });
    expect(await pythonSays(webhook, endpoint.secret)).toBe('valid');
    expect((await partner.sandbox.get('/v1/events')).body.data).toEqual([]);
    expect(await endpointState(service, endpoint)).toMatchObject({
      status: 'enabled',
      consecutive_blocks: 0,
    });

    await service.admin.post(`${endpoint.path}/disable`);
    expect((await service.admin.post(`${endpoint.path}/test`)).body.code).toBe('conflict');
  });
});

describe('resend', () => {
  it('makes a new delivery of the same event and bytes', async () => {
    const receiver = await receiverThatAnswers(200);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    const first = await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
    const answer = await service.admin.post(`/internal/v1/deliveries/${first.id}/resend`);
    expect(answer.status, answer.text).toBe(202);
    expect(answer.body.data).toMatchObject({
      kind: 'resend',
      event_id: first.event_id,
      endpoint_id: endpoint.id,
    });
    expect(answer.body.data.id).not.toBe(first.id);
    await eventually('the second webhook', () => receiver.received.length === 2);
    expect(receiver.received[1]!.body).toBe(receiver.received[0]!.body);
    expect(receiver.received[1]!.headers['x-service-delivery']).toBe(answer.body.data.id);
    expect(await getDelivery(service, first.id)).toMatchObject({ status: 'delivered', attempt_count: 1 });

    const test = await service.admin.post(`${endpoint.path}/test`);
    expect((await service.admin.post(`/internal/v1/deliveries/${test.body.data.id}/resend`)).body.code).toBe(
      'conflict',
    );
    await service.admin.call('DELETE', endpoint.path);
    expect((await service.admin.post(`/internal/v1/deliveries/${first.id}/resend`)).body.code).toBe(
      'conflict',
    );
    expect((await service.admin.post('/internal/v1/deliveries/dlv_nothing/resend')).status).toBe(404);
  });
});
