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
import { arrivedAt, signersOf } from './rotation-signatures.js';
import { listDeliveries, recordEvent, registerEndpoint, type RegisteredEndpoint } from './support.js';

const EVERY_MS = 20;
/** From the claim, which reads the secrets, to the arrival; on a busy machine. */
const ON_ITS_WAY_MS = 1_000;
/** The same, where the period that is looked at is short. */
const SETTLED_MS = 400;
const EMERGENCIES = 8;

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let secrets: Record<string, string>;
let traffic: Traffic;

beforeAll(async () => {
  service = await startTestService({ env: { WEBHOOK_RETRY_DELAYS_MS: '5000,5000,5000,5000,5000' } });
});
beforeEach(async () => {
  partner = await service.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  secrets = { s0: endpoint.secret };
  traffic = new Traffic();
});
afterEach(async () => {
  await traffic.stop();
  await receiver.close();
});
afterAll(() => service.stop());

/** An event every 20 ms or so, for as long as the test looks. */
class Traffic {
  private running = true;
  private readonly flow = this.run();

  async stop(): Promise<void> {
    this.running = false;
    await this.flow;
  }

  private async run(): Promise<void> {
    await Promise.resolve();
    while (this.running) {
      await recordEvent(service, { partnerId: partner.id });
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}

interface Rotated {
  readonly askedAt: number;
  readonly answeredAt: number;
  /** End of the old secret's grace, milliseconds since the epoch; null without one. */
  readonly graceEndsAt: number | null;
}

async function rotate(name: string, graceSeconds: number): Promise<Rotated> {
  const askedAt = Date.now();
  const answer = await service.admin.post(`${endpoint.path}/rotate-secret`, { grace_seconds: graceSeconds });
  const answeredAt = Date.now();
  expect(answer.status, answer.text).toBe(200);
  const { secret, previous_secret_until } = answer.body.data as Record<string, string | null>;
  secrets[name] = String(secret);
  return {
    askedAt,
    answeredAt,
    graceEndsAt: previous_secret_until ? Date.parse(previous_secret_until) : null,
  };
}

async function finish(): Promise<number> {
  const answer = await service.admin.post(`${endpoint.path}/rotate-secret/finish`);
  expect(answer.status, answer.text).toBe(200);
  return Date.now();
}

/** Waits until twenty webhooks have arrived after `time`. */
async function seenAfter(time: number): Promise<void> {
  const late = (): ReceivedWebhook[] => receiver.received.filter((webhook) => arrivedAt(webhook) > time);
  await eventually('twenty webhooks', () => late().length >= 20);
}

/** Every webhook that arrived in [from, to), by who signed it; milliseconds since the epoch. */
function signersBetween(from: number, to: number): string[] {
  const within = receiver.received.filter((w) => arrivedAt(w) >= from && arrivedAt(w) < to);
  expect(within.length, 'traffic in the period').toBeGreaterThan(5);
  return [...new Set(within.map((webhook) => signersOf(webhook, secrets).join('+')))].sort();
}

describe('a rotation under traffic', () => {
  it('signs with new and old, new first, until the grace ends, and then with the new one alone', async () => {
    await eventually('traffic', () => receiver.received.length >= 20);
    const { askedAt, answeredAt, graceEndsAt } = await rotate('s1', 6);
    const ends = graceEndsAt!;
    expect(ends).toBeGreaterThanOrEqual(askedAt + 5_999);
    expect(ends).toBeLessThanOrEqual(answeredAt + 6_001);
    await seenAfter(ends + ON_ITS_WAY_MS);
    await traffic.stop();

    const shown = (await service.admin.get(endpoint.path)).body.data as { previous_secret_until: unknown };
    expect(shown.previous_secret_until, 'once it has passed').toBeNull();
    expect(signersBetween(0, askedAt)).toEqual(['s0']);
    expect(signersBetween(answeredAt + SETTLED_MS, ends)).toEqual(['s1+s0']);
    // The old one is gone with its grace, not before and not a second later.
    expect(signersBetween(ends + ON_ITS_WAY_MS, Infinity)).toEqual(['s1']);
    for (const webhook of receiver.received) {
      expect(['s0', 's1+s0', 's1']).toContain(signersOf(webhook, secrets).join('+'));
    }
  });

  it('within a grace drops the older of the two old secrets, and finish ends the grace at once', async () => {
    const first = await rotate('s1', 600);
    await seenAfter(first.answeredAt + SETTLED_MS);
    const second = await rotate('s2', 600);
    await seenAfter(second.answeredAt + SETTLED_MS);
    const finishAskedAt = Date.now();
    const finishedAt = await finish();
    await seenAfter(finishedAt + ON_ITS_WAY_MS);
    expect((await service.admin.post(`${endpoint.path}/rotate-secret/finish`)).status).toBe(200);
    await traffic.stop();

    expect(signersBetween(first.answeredAt + SETTLED_MS, second.askedAt)).toEqual(['s1+s0']);
    expect(signersBetween(second.answeredAt + SETTLED_MS, finishAskedAt)).toEqual(['s2+s1']);
    expect(signersBetween(finishedAt + ON_ITS_WAY_MS, Infinity)).toEqual(['s2']);
    for (const webhook of receiver.received)
      expect(signersOf(webhook, secrets).length).toBeLessThanOrEqual(2);
  });

  it('with no grace lets no attempt that starts after the answer carry the old signature', async () => {
    await eventually('traffic', () => receiver.received.length >= 5);
    const answers: number[] = [];
    for (let i = 1; i <= EMERGENCIES; i++) {
      const { answeredAt } = await rotate(`s${i}`, 0);
      answers.push(answeredAt);
      await seenAfter(answeredAt);
    }
    await traffic.stop();
    await eventually(
      'all recorded',
      async () => (await listDeliveries(service, endpoint, '&status=pending')).length === 0,
    );
    const startedAt = await attemptStarts();
    for (const webhook of receiver.received) {
      const signers = signersOf(webhook, secrets);
      expect(signers).toHaveLength(1);
      const start = startedAt.get(String(webhook.headers['x-service-delivery']))!;
      // How many rotations had been answered when the attempt began: it knows at least that secret. The log's start is
      // reckoned back when the outcome is written, so it is too late by what that waits for a connection.
      const known = answers.filter((answeredAt) => answeredAt + SETTLED_MS < start).length;
      expect(Number(signers[0]!.slice(1)), `attempt at ${start}`).toBeGreaterThanOrEqual(known);
    }
    expect(new Set(receiver.received.flatMap((webhook) => signersOf(webhook, secrets))).size).toBe(
      EMERGENCIES + 1,
    );
  });

  it('signs the next attempt of a delivery that failed before it, under the same id', async () => {
    await traffic.stop();
    await eventually(
      'nothing is owed',
      async () => (await listDeliveries(service, endpoint, '&status=pending')).length === 0,
    );
    receiver.received.length = 0;
    receiver.answer = (nth, _webhook, response) => void response.writeHead(nth === 0 ? 500 : 200).end();
    await recordEvent(service, { partnerId: partner.id });
    await eventually('the first attempt', () => receiver.received.length === 1);
    await rotate('s1', 0);
    await eventually('the second attempt', () => receiver.received.length === 2);
    const [first, second] = receiver.received as [ReceivedWebhook, ReceivedWebhook];
    expect([signersOf(first, secrets), signersOf(second, secrets)]).toEqual([['s0'], ['s1']]);
    expect(second.headers['x-service-delivery']).toBe(first.headers['x-service-delivery']);
    expect(second.body).toBe(first.body);
  });
});

/** When the first attempt of each delivery began, by the delivery log; milliseconds since the epoch. */
async function attemptStarts(): Promise<Map<string, number>> {
  const { rows } = await service.database.pool.query<{ id: string; started_at: Date }>(
    'SELECT delivery_id AS id, started_at FROM webhook_attempts WHERE endpoint_id = $1 AND number = 1',
    [endpoint.id],
  );
  return new Map(rows.map((row) => [row.id, row.started_at.getTime()]));
}
