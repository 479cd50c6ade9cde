import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { arrivedAt, readSignature, signersOf } from './rotation-signatures.js';
import { EndpointClock } from './schedule-clock.js';
import {
  deliveryThat,
  endpointState,
  getDelivery,
  listDeliveries,
  recordEvent,
  registerEndpoint,
  type RegisteredEndpoint,
} from './support.js';

/** The documented numbers (spec section 6, D30, D31), intentionally not read from the code. */
const RETRIES_MS = [30_000, 60_000, 180_000, 300_000, 900_000];
const BLOCK_MS = 60_000;
const TOLERANCE_MS = 1_000;
/** More than the tolerance, which reveals a due time counted from the start. */
const ANSWER_TAKES_MS = 1_500;
/** How late an attempt may be on a busy machine. */
const LATE_MS = 10_000;

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let clock: EndpointClock;

beforeAll(async () => {
  // One slot shows the sending order, the lease prevents repeats on a busy machine, and there are four sweeps a second.
  // Every other setting is the default.
  const env = { WEBHOOK_CONCURRENCY_PER_ENDPOINT: '1', LEASE_MS: '60000', SWEEP_INTERVAL_MS: '250' };
  service = await startTestService({ env });
});
beforeEach(async () => {
  partner = await service.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  clock = new EndpointClock(service.database, endpoint.id);
});
afterEach(() => receiver.close());
afterAll(() => service.stop());

const answerWith = (status: number, afterMs = 0): void => {
  receiver.answer = (_nth, _webhook, response) =>
    void setTimeout(() => response.writeHead(status).end(), afterMs);
};
const iccids = (webhooks: readonly ReceivedWebhook[]): string[] =>
  webhooks.map(({ body }) => (JSON.parse(body) as { data: { iccid: string } }).data.iccid);

/** The end of the last attempt in the log, in milliseconds since the epoch. */
function lastEnd(attempts: readonly { started_at: string; latency_ms: number }[]): number {
  const { started_at, latency_ms } = attempts.at(-1)!;
  return Date.parse(started_at) + latency_ms;
}

/** Waits until the delivery and its log agree, because two statements read them. */
const attempted = (count: number) =>
  deliveryThat(
    service,
    endpoint,
    `has ${count} attempts`,
    (d) => d.attempt_count === count && d.attempts.length === count,
  );

/** Advances the clock from attempt to attempt until the only pending delivery has failed. */
async function runOut(id: string): Promise<void> {
  await eventually(`${id} failed`, async () => {
    const delivery = await getDelivery(service, id);
    if (delivery.status === 'failed') return true;
    const due = Date.parse(String(delivery.next_attempt_at));
    if (due > Date.now()) await clock.advanceTo(due);
    return false;
  });
}

async function failOne(iccid: string): Promise<void> {
  await recordEvent(service, { partnerId: partner.id, iccid });
  const [newest] = await listDeliveries(service, endpoint);
  await runOut(newest!.id);
}

describe('the documented schedule', () => {
  it('has six attempts: +30 s, +60 s, +3 min, +5 min and +15 min after the end of the previous one', async () => {
    answerWith(500, ANSWER_TAKES_MS);
    await recordEvent(service, { partnerId: partner.id });
    for (const [index, delayMs] of RETRIES_MS.entries()) {
      const { next_attempt_at: due, attempts } = await attempted(index + 1);
      expect(attempts.at(-1)!.latency_ms).toBeGreaterThanOrEqual(ANSWER_TAKES_MS - 5);
      const gap = Date.parse(String(due)) - lastEnd(attempts);
      expect(Math.abs(gap - delayMs), `gap ${index + 1}`).toBeLessThan(TOLERANCE_MS);

      const movedMs = await clock.advanceTo(String(due), 1_000);
      await eventually('the next attempt', () => receiver.received.length === index + 2);
      const lateMs = arrivedAt(receiver.received[index + 1]!) - (Date.parse(String(due)) - movedMs);
      expect(lateMs).toBeGreaterThan(-50);
      expect(lateMs).toBeLessThan(LATE_MS);
    }
    const delivery = await deliveryThat(service, endpoint, 'failed', (d) => d.status === 'failed');
    expect(delivery).toMatchObject({ attempt_count: 6, next_attempt_at: null });
    expect(delivery.attempts.map(({ number, outcome }) => [number, outcome])).toEqual(
      [1, 2, 3, 4, 5, 6].map((number) => [number, 'failed']),
    );
    expectSixOfOneDelivery(delivery.id);

    const state = await endpointState(service, endpoint);
    expect(state).toMatchObject({ status: 'blocked', consecutive_blocks: 1, disabled_reason: null });
    // The block starts when the last failure is recorded, which takes seconds on a busy machine.
    const blockedAt = Date.parse(String(state.updated_at));
    expect(Date.parse(String(state.blocked_until)) - blockedAt).toBe(BLOCK_MS);
    expect(blockedAt).toBeGreaterThanOrEqual(lastEnd(delivery.attempts) - 1);
    expect(blockedAt).toBeLessThan(lastEnd(delivery.attempts) + LATE_MS);
  });

  /** Expects one id, the same bytes, the documented headers, and a new valid `t` each time. */
  function expectSixOfOneDelivery(id: string): void {
    expect(receiver.received).toHaveLength(6);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    for (const [index, webhook] of receiver.received.entries()) {
      const ours = Object.keys(webhook.headers).filter((name) => name.startsWith('x-'));
      expect(ours.sort()).toEqual(['x-service-delivery', 'x-service-event', 'x-service-signature']);
      expect(webhook.headers['x-service-delivery']).toBe(id);
      expect(signersOf(webhook, { secret: endpoint.secret })).toEqual(['secret']);
      // Seconds here are minutes by the moved clock, so an old `t` would exceed the 300 s there.
      const ageMs = arrivedAt(webhook) - readSignature(webhook).t * 1_000;
      expect(ageMs).toBeGreaterThan(-50);
      const before = receiver.received[index - 1];
      if (before) expect((readSignature(webhook).t + 1) * 1_000).toBeGreaterThan(arrivedAt(before));
    }
    const times = receiver.received.map((webhook) => readSignature(webhook).t);
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  }
});

describe('a block', () => {
  it('sends nothing for 60 seconds and uses up no attempt, and then sends the waiting deliveries, oldest first', async () => {
    answerWith(500);
    await failOne('gives up');
    expect((await endpointState(service, endpoint)).status).toBe('blocked');
    for (const iccid of ['1', '2', '3', '4']) await recordEvent(service, { partnerId: partner.id, iccid });
    const { blocked_until } = await endpointState(service, endpoint);
    await clock.advanceTo(blocked_until, 6_000);
    const { blocked_until: endsAt } = await endpointState(service, endpoint);
    const waiting = (await listDeliveries(service, endpoint, '&status=pending')).map((d) => d.attempt_count);
    expect(waiting).toEqual([0, 0, 0, 0]);
    expect(receiver.received).toHaveLength(6);

    answerWith(200);
    await eventually('the four', () => receiver.received.length === 10);
    expect(arrivedAt(receiver.received[6]!)).toBeGreaterThan(Date.parse(String(endsAt)) - 50);
    expect(iccids(receiver.received.slice(6))).toEqual(['1', '2', '3', '4']);
    await eventually('recorded', async () =>
      (await listDeliveries(service, endpoint, '&status=delivered')).length === 4 ? true : null,
    );
    expect(await endpointState(service, endpoint)).toMatchObject({
      status: 'enabled',
      consecutive_blocks: 0,
    });
  });

  it('disables the endpoint if it is the fifth in a row: events are held until it is enabled', async () => {
    answerWith(500);
    for (let block = 1; block <= 4; block++) {
      await failOne(`block ${block}`);
      const state = await endpointState(service, endpoint);
      expect(state).toMatchObject({ status: 'blocked', consecutive_blocks: block, disabled_reason: null });
      await clock.advanceTo(state.blocked_until);
    }
    await failOne('the fifth');
    expect(await endpointState(service, endpoint)).toMatchObject({
      status: 'disabled',
      consecutive_blocks: 5,
      disabled_reason: 'consecutive_blocks',
      disabled_at: expect.stringMatching(/Z$/),
      blocked_until: null,
    });
    expect(receiver.received).toHaveLength(30);
    const audit = await service.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.disabled`,
    );
    expect(audit.body.data).toMatchObject([
      { actor: 'system', details: { reason: 'consecutive_blocks', consecutive_blocks: 5 } },
    ]);

    answerWith(200);
    for (const iccid of ['a', 'b', 'c']) await recordEvent(service, { partnerId: partner.id, iccid });
    await clock.advance(3_600_000);
    // In one second the worker sweeps four times and receives every notification, which is enough to reveal a fault.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(receiver.received).toHaveLength(30);
    expect(await listDeliveries(service, endpoint, '&status=held')).toHaveLength(3);
    const enabled = await service.admin.post(`${endpoint.path}/enable`);
    expect(enabled.body.data).toMatchObject({ status: 'enabled', consecutive_blocks: 0 });
    await eventually('the three', () => receiver.received.length === 33);
    expect(iccids(receiver.received.slice(30))).toEqual(['a', 'b', 'c']);
    expect(await listDeliveries(service, endpoint, '&status=failed')).toHaveLength(5);
  });
});
