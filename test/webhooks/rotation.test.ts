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
import {
  closeReceivers,
  listDeliveries,
  receiverThatAnswers,
  recordEvent,
  registerEndpoint,
  type RegisteredEndpoint,
} from './support.js';

const EVERY_MS = 20;
const EMERGENCIES = 4;

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let secrets: Record<string, string>;
let traffic: Traffic;

beforeAll(async () => {
  service = await startTestService({
    env: { LEASE_MS: '60000', WEBHOOK_RETRY_DELAYS_MS: '5000,5000,5000,5000,5000' },
  });
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
  await Promise.all([receiver.close(), closeReceivers()]);
});
afterAll(() => service.stop());

/** Records an event about every 20 ms during the test. Each event's ICCID is its sequence number. */
class Traffic {
  /** Times just before each event was recorded, by its number, in milliseconds since the epoch. */
  private readonly begunAt: number[] = [];
  private running = true;
  private readonly flow = this.run();

  async stop(): Promise<void> {
    this.running = false;
    await this.flow;
  }

  /** Time just before its event was recorded. No worker can have claimed the webhook and read the secrets earlier. */
  earliestClaimOf({ body }: ReceivedWebhook): number {
    const { data } = JSON.parse(body) as { data: { iccid: string } };
    return this.begunAt[Number(data.iccid)]!;
  }

  private async run(): Promise<void> {
    await Promise.resolve();
    while (this.running) {
      this.begunAt.push(Date.now());
      await recordEvent(service, { partnerId: partner.id, iccid: String(this.begunAt.length - 1) });
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}

interface Rotated {
  readonly askedAt: number;
  readonly answeredAt: number;
  /** End of the old secret's grace in milliseconds since the epoch, or null without one. */
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

/** Waits for twenty webhooks whose events were recorded after `time`. */
async function seenAfter(time: number): Promise<void> {
  const late = (): ReceivedWebhook[] => receiver.received.filter((w) => traffic.earliestClaimOf(w) > time);
  await eventually('twenty webhooks', () => late().length >= 20);
}

/** Signers of the webhooks whose event was recorded at or after `from` and that arrived before `to` (Unix ms). */
function signersBetween(from: number, to: number): string[] {
  const within = receiver.received.filter((w) => traffic.earliestClaimOf(w) >= from && arrivedAt(w) < to);
  expect(within.length, 'traffic in the period').toBeGreaterThan(5);
  return [...new Set(within.map((webhook) => signersOf(webhook, secrets).join('+')))].sort();
}

describe('a rotation under traffic', () => {
  it('signs with the new and the old secret, new first, until the grace ends, and then with the new one only', async () => {
    await eventually('traffic', () => receiver.received.length >= 20);
    const { askedAt, answeredAt, graceEndsAt } = await rotate('s1', 6);
    const ends = graceEndsAt!;
    expect(ends).toBeGreaterThanOrEqual(askedAt + 5_999);
    expect(ends).toBeLessThanOrEqual(answeredAt + 6_001);
    await seenAfter(ends);
    await traffic.stop();

    const shown = (await service.admin.get(endpoint.path)).body.data as { previous_secret_until: unknown };
    expect(shown.previous_secret_until, 'once it has passed').toBeNull();
    expect(signersBetween(0, askedAt)).toEqual(['s0']);
    expect(signersBetween(answeredAt, ends)).toEqual(['s1+s0']);
    // The old secret is dropped with its grace, not earlier and within a second.
    expect(signersBetween(ends, Infinity)).toEqual(['s1']);
    for (const webhook of receiver.received) {
      expect(['s0', 's1+s0', 's1']).toContain(signersOf(webhook, secrets).join('+'));
    }
  });

  it('drops the older of two old secrets when it happens within a grace, and finish ends the grace at once', async () => {
    const first = await rotate('s1', 600);
    await seenAfter(first.answeredAt);
    const second = await rotate('s2', 600);
    await seenAfter(second.answeredAt);
    const finishAskedAt = Date.now();
    const finishedAt = await finish();
    await seenAfter(finishedAt);
    expect((await service.admin.post(`${endpoint.path}/rotate-secret/finish`)).status).toBe(200);
    await traffic.stop();

    expect(signersBetween(first.answeredAt, second.askedAt)).toEqual(['s1+s0']);
    expect(signersBetween(second.answeredAt, finishAskedAt)).toEqual(['s2+s1']);
    expect(signersBetween(finishedAt, Infinity)).toEqual(['s2']);
    for (const webhook of receiver.received)
      expect(signersOf(webhook, secrets).length).toBeLessThanOrEqual(2);
  });

  it('does not use the old secret for events recorded after a rotation without grace', async () => {
    await eventually('traffic', () => receiver.received.length >= 5);
    const answers: number[] = [];
    for (let i = 1; i <= EMERGENCIES; i++) {
      const { answeredAt } = await rotate(`s${i}`, 0);
      answers.push(answeredAt);
      await seenAfter(answeredAt);
    }
    await traffic.stop();
    for (const webhook of receiver.received) {
      const signers = signersOf(webhook, secrets);
      expect(signers).toHaveLength(1);
      // Rotations that had completed before the event was recorded. The webhook uses at least that secret.
      const begun = traffic.earliestClaimOf(webhook);
      const known = answers.filter((answeredAt) => answeredAt <= begun).length;
      expect(Number(signers[0]!.slice(1)), `event of ${begun}`).toBeGreaterThanOrEqual(known);
    }
    expect(new Set(receiver.received.flatMap((webhook) => signersOf(webhook, secrets))).size).toBe(
      EMERGENCIES + 1,
    );
  });

  it('signs the next attempt of an earlier failed delivery with the new secret, same id and new URL', async () => {
    await traffic.stop();
    await eventually(
      'nothing is owed',
      async () => (await listDeliveries(service, endpoint, '&status=pending')).length === 0,
    );
    receiver.received.length = 0;
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvent(service, { partnerId: partner.id });
    const first = await eventually('the first attempt', () => receiver.received[0]);
    await rotate('s1', 0);
    const { url, received } = await receiverThatAnswers(200);
    await service.admin.call('PATCH', endpoint.path, { body: { url } });
    const second = await eventually('the second attempt', () => received[0]);
    expect([signersOf(first, secrets), signersOf(second, secrets)]).toEqual([['s0'], ['s1']]);
    expect(second.headers['x-service-delivery']).toBe(first.headers['x-service-delivery']);
    expect(second.body).toBe(first.body);
  });
});
