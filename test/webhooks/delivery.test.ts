import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { timeOfId } from '../../src/common/ids.js';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import { outputOf } from '../docs/program.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import {
  eventually,
  PATIENCE_MS,
  type ReceivedWebhook,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { arrivedAt } from './rotation-signatures.js';
import { connections } from './sending/receivers.js';
import {
  closeReceivers,
  deliveryThat,
  endpointState,
  FAST,
  getDelivery,
  listDeliveries,
  receiverThatAnswers,
  recordEvent,
  recordEvents,
  registerEndpoint,
} from './support.js';

const DAY_MS = 86_400_000;
const BODY_TAKES_MS = 1_500;

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ env: { ...FAST, LEASE_MS: '15000' } });
});
beforeAll(async () => {
  partner = await service.createPartner();
});
afterEach(async () => {
  vi.useRealTimers();
  partner = await service.createPartner();
  await closeReceivers();
});
afterAll(() => service.stop());

/** A receiver in Python that parses the header, and checks the signature and the age of `t`. */
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

/** Runs asynchronously, because a blocked process could not close idle connections in time. */
async function pythonSays(webhook: ReceivedWebhook, secret: string): Promise<string> {
  const header = String(webhook.headers['x-service-signature']);
  const command = ['python3', '-c', PYTHON_RECEIVER, header, secret] as const;
  return (await outputOf(command, PROJECT_ROOT, webhook.body, PATIENCE_MS)).trim();
}

describe('a delivery', () => {
  it('is one POST of the stored bytes with exactly the documented headers', async () => {
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

  it('has a signature that another implementation verifies, and that any change invalidates', async () => {
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

  it('is created only for endpoints with its partner, mode and event type, in the transaction of the event', async () => {
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

describe('an attempt that waits for its response', () => {
  it('is shown with its number and start, in the delivery and in the log, until it ends', async () => {
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

  it('is shown with its phase once it lasts', async () => {
    let answer = (): void => undefined;
    const silent = await receiverThatAnswers();
    silent.answer = (_nth, _webhook, response) => {
      answer = () => void response.writeHead(500).end();
    };
    const stuck = `https://127.0.0.1:${await connections(() => undefined)}/hook`;
    const waiting = await registerEndpoint(service, partner.id, { url: silent.url });
    const handshaking = await registerEndpoint(service, partner.id, { url: stuck });
    await recordEvent(service, { partnerId: partner.id });

    const inPhase = (phase: string) => (d: { current_attempt: { phase: string | null } | null }) =>
      d.current_attempt?.phase === phase;
    const explanationOf = async ({ id }: { id: string }): Promise<unknown> =>
      (await service.admin.get(`/internal/v1/deliveries/${id}/explanation`)).body.data;
    const first = await deliveryThat(service, waiting, 'waits for its response', inPhase('waiting'));
    expect(await explanationOf(first)).toMatchObject({
      summary: 'The first attempt is waiting for the response of your server.',
    });
    const second = await deliveryThat(service, handshaking, 'is in its TLS handshake', inPhase('tls'));
    expect(await explanationOf(second)).toMatchObject({
      summary: 'The first attempt is establishing TLS with your server.',
    });
    answer();
  });
});

describe('the log of attempts', () => {
  it('records the start of the request and the latency until the status line, however long the body takes', async () => {
    const receiver = await receiverThatAnswers();
    receiver.answer = (_nth, _webhook, response) => {
      response.writeHead(200).write('slow');
      setTimeout(() => response.end(), BODY_TAKES_MS);
    };
    const attempts = [];
    for (let nth = 0; nth < 4; nth++) {
      const endpoint = await registerEndpoint(service, partner.id, {
        url: receiver.url,
        event_types: ['esim.expired'],
      });
      await recordEvent(service, { partnerId: partner.id, type: 'esim.expired' });
      const { id, attempts: logged } = await deliveryThat(
        service,
        endpoint,
        'is delivered',
        (d) => d.status === 'delivered',
      );
      const sent = receiver.received.find(({ headers }) => headers['x-service-delivery'] === id)!;
      attempts.push({ ...logged[0]!, lateMs: Date.parse(logged[0]!.started_at) - arrivedAt(sent) });
      await service.admin.call('DELETE', endpoint.path);
    }
    // On a busy machine only the best of several measurements is meaningful.
    const least = (values: readonly number[]): number => Math.min(...values);
    expect(least(attempts.map(({ lateMs }) => Math.abs(lateMs)))).toBeLessThan(100);
    expect(least(attempts.map(({ latency_ms }) => latency_ms))).toBeLessThan(BODY_TAKES_MS - 500);
    for (const { phases } of attempts) expect(phases!.total_ms).toBeGreaterThanOrEqual(BODY_TAKES_MS - 5);
  });

  it.each([
    [
      'NUL and invalid UTF-8 in body and headers',
      ['HTTP/1.1 200 OK\r\nX-A: ', [0xff, 0xc3, 0x28], '\r\nContent-Length: 5\r\n\r\na\0b', [0xff, 0xfe]],
      'ab\ufffd\ufffd',
    ],
    [
      'an encoded lone surrogate',
      ['HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n', [0xed, 0xa0, 0x80]],
      '\ufffd\ufffd\ufffd',
    ],
  ])('stays readable through the admin API: %s', async (_what, parts, response_body) => {
    const answer = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
    const port = await connections((socket: Socket) => socket.once('data', () => socket.write(answer)));
    const endpoint = await registerEndpoint(service, partner.id, { url: `http://127.0.0.1:${port}/hook` });
    await recordEvent(service, { partnerId: partner.id });
    const { attempts } = await deliveryThat(service, endpoint, 'was tried', ({ attempt_count: n }) => n > 0);
    expect(attempts[0]).toMatchObject({ number: 1, outcome: 'delivered', error: null, response_body });
  });

  it('contains nothing that a receiver would accept as a signature, in either scheme', async () => {
    const receiver = await receiverThatAnswers(200);
    const fields = { url: receiver.url, signature_schemes: ['document', 'standard'] };
    const endpoint = await registerEndpoint(service, partner.id, fields);
    await recordEvent(service, { partnerId: partner.id });
    const delivery = await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
    const { headers } = receiver.received[0]!;
    const signatures = [
      /(?<=v1=)[0-9a-f]{64}/.exec(String(headers['x-service-signature']))![0],
      String(headers['webhook-signature']).slice('v1,'.length),
    ];
    const { rows } = await service.database.pool.query<{ row: string }>(
      'SELECT a::text AS row FROM webhook_attempts a WHERE endpoint_id = $1',
      [endpoint.id],
    );
    const kept = rows.map(({ row }) => row).join();
    const shown = JSON.stringify(delivery);
    expect(kept).toContain('X-Service-Signature');
    expect(shown).toContain(/^t=\d+/.exec(String(headers['x-service-signature']))![0]);
    for (const signature of signatures) {
      expect(kept).not.toContain(signature);
      expect(shown).not.toContain(signature);
    }
  });
});

describe('a process with a wrong clock', () => {
  it.each([10, -40])('records, delivers and resends events: off by %i days', async (days) => {
    const { url } = await receiverThatAnswers(200);
    const endpoint = await registerEndpoint(service, partner.id, { url });
    // Fakes only `Date`. Timers keep running.
    const askWrongClock = () => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * DAY_MS });
    askWrongClock();
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id, type: 'esim.expired' }]);
    vi.useRealTimers();
    const delivered = await eventually('both are delivered', async () => {
      const found = await listDeliveries(service, endpoint, '&status=delivered');
      return found.length === 2 && found;
    });
    for (const { id, event_id: eventId } of delivered) {
      expect(Math.abs(timeOfId(eventId!).getTime() - Date.now())).toBeLessThan(DAY_MS);
      expect(await getDelivery(service, id)).toMatchObject({ status: 'delivered' });
    }
    askWrongClock();
    const resent = await service.admin.post(`/internal/v1/deliveries/${delivered[0]!.id}/resend`);
    vi.useRealTimers();
    expect(resent.status).toBe(202);
    const { id } = resent.body.data as { id: string };
    await eventually('it is delivered', async () => (await getDelivery(service, id)).status === 'delivered');
  });
});

describe('webhook.test', () => {
  it('makes one attempt that changes nothing and appears in no feed', async () => {
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
  it('creates a new delivery of the same event and bytes', async () => {
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

  it('leaves a failed delivery unchanged, however often its event is resent', async () => {
    const receiver = await receiverThatAnswers(500);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    const failed = await deliveryThat(service, endpoint, 'has failed', (d) => d.status === 'failed');
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(204).end();
    const calls = [1, 2].map(() => service.admin.post(`/internal/v1/deliveries/${failed.id}/resend`));
    const ids = (await Promise.all(calls)).map((answer) => answer.body.data.id as string);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) {
      const resent = await eventually('it is delivered', async () => {
        const delivery = await getDelivery(service, id);
        return delivery.status === 'delivered' && delivery;
      });
      expect(resent.attempts.map(({ number }) => number)).toEqual([1]);
    }
    const unchanged = await getDelivery(service, failed.id);
    expect(unchanged).toMatchObject({ status: 'failed', attempt_count: 6 });
    expect(unchanged.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6]);
  });
});

describe('a database that repeatedly closes every connection', () => {
  it('loses no delivery and sends none needlessly', async () => {
    const receiver = await receiverThatAnswers(200);
    receiver.answer = (_nth, _webhook, response) => {
      setTimeout(() => response.writeHead(200).end(), 20);
    };
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvents(
      service,
      Array.from({ length: 400 }, () => ({ partnerId: partner.id })),
    );
    const { pool } = service.database;
    for (let i = 0; i < 5; i++) {
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'partner-esim%'`,
      );
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    await eventually('all delivered', async () => {
      const { rows } = await pool.query<{ delivered: number }>(
        `SELECT count(*)::int AS delivered FROM webhook_deliveries WHERE status = 'delivered' AND endpoint_id = $1`,
        [endpoint.id],
      );
      return rows[0]!.delivered === 400;
    });
    const ids = new Set(receiver.received.map((webhook) => webhook.headers['x-service-delivery']));
    expect(ids.size).toBe(400);
    // A claim whose response is lost is repeated when its lease expires, and an outcome is kept. Each of the five cuts
    // may lose one claim of at most the 16 deliveries in flight.
    expect(receiver.received.length - 400).toBeLessThanOrEqual(5 * 16);
  });
});
