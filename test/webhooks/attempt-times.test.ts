import { afterEach, beforeEach, expect, it } from 'vitest';
import { startReceiver, startTestService, type TestReceiver, type TestService } from '../harness/index.js';
import { arrivedAt } from './rotation-signatures.js';
import { deliveryThat, FAST, recordEvent, registerEndpoint } from './support.js';

const BODY_TAKES_MS = 1_500;

let service: TestService;
let receiver: TestReceiver;

beforeEach(async () => {
  service = await startTestService({ env: { ...FAST, WEBHOOK_TIMEOUT_MS: '20000' } });
  receiver = await startReceiver();
});
afterEach(async () => {
  await service.stop();
  await receiver.close();
});

async function sendOne(): Promise<{ startedLateMs: number; latencyMs: number; totalMs: number }> {
  const partner = await service.createPartner();
  const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  const nth = receiver.received.length;
  await recordEvent(service, { partnerId: partner.id });
  const delivery = await deliveryThat(service, endpoint, 'is delivered', (d) => d.status === 'delivered');
  const attempt = delivery.attempts[0]!;
  return {
    startedLateMs: Date.parse(attempt.started_at) - arrivedAt(receiver.received[nth]!),
    latencyMs: attempt.latency_ms,
    totalMs: attempt.phases!.total_ms,
  };
}

it('an attempt starts when its request is made, and its latency ends with the status line, however long the body', async () => {
  receiver.answer = (_nth, _webhook, response) => {
    response.writeHead(200).write('slow');
    setTimeout(() => response.end(), BODY_TAKES_MS);
  };
  // The first one makes the connection; on a busy machine the best of the others is what the service can say.
  const attempts = [await sendOne(), await sendOne(), await sendOne(), await sendOne()];
  const nearest = Math.min(...attempts.map(({ startedLateMs }) => Math.abs(startedLateMs)));
  expect(nearest).toBeLessThan(100);
  // Were it the time of its end, each would be later by all that the body takes.
  expect(Math.min(...attempts.map(({ startedLateMs }) => startedLateMs))).toBeLessThan(BODY_TAKES_MS - 500);
  expect(Math.min(...attempts.map(({ latencyMs }) => latencyMs))).toBeLessThan(BODY_TAKES_MS - 500);
  for (const { totalMs } of attempts) expect(totalMs).toBeGreaterThanOrEqual(BODY_TAKES_MS - 5);
});
