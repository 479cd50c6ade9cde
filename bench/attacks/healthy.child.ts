import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { answerParent } from '../child-link.js';
import { OrderReceiver } from '../service/order-receiver.js';
import { HEALTHY_CALLS, type HealthyCall, type HealthyQuestion, type HealthyReport } from './healthy.js';

/** Of each of the three calls. */
const EVERY_MS = 200;
const PATIENCE_MS = 20_000;
const ORDER = JSON.stringify({ package_id: 'pkg_fr_1gb_7d', quantity: 1 });
const agent = new Agent({ connections: 32, headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS });

let apiUrl: string;
let key: string;
let receiver: OrderReceiver;

answerParent<HealthyQuestion, HealthyReport | object>(async (question) => {
  if (question.do === 'measure') return measure(question.durationMs);
  ({ apiUrl, key } = question);
  receiver = await OrderReceiver.start();
  return { hookUrl: receiver.url };
});

async function measure(durationMs: number): Promise<HealthyReport> {
  const latencies = Object.fromEntries(HEALTHY_CALLS.map((call) => [call, [] as number[]])) as Record<
    HealthyCall,
    number[]
  >;
  const errors: Record<string, number> = {};
  const timed = async (name: HealthyCall, call: () => Promise<void>): Promise<void> => {
    const startedAtMs = performance.now();
    try {
      await call();
      latencies[name].push(performance.now() - startedAtMs);
    } catch (error) {
      const what = `${name}: ${(error as Error).message.replace(/ord_\w+/, '').trim()}`;
      errors[what] = (errors[what] ?? 0) + 1;
    }
  };
  const underWay: Promise<void>[] = [];
  for (const endAtMs = performance.now() + durationMs; performance.now() < endAtMs;) {
    underWay.push(
      timed('GET /v1/me', () => get('/v1/me')),
      timed('GET /v1/orders', () => get('/v1/orders?limit=25')),
      orderToWebhook(timed),
    );
    await sleep(EVERY_MS);
  }
  await Promise.all(underWay);
  for (const times of Object.values(latencies)) times.sort((a, b) => a - b);
  return { latencies, errors };
}

async function orderToWebhook(
  timed: (name: HealthyCall, call: () => Promise<void>) => Promise<void>,
): Promise<void> {
  let id = '';
  await timed('order to webhook', async () => {
    await timed('POST /v1/orders', async () => {
      id = await placeOrder();
    });
    if (id !== '') await receiver.issuedAtMs(id, PATIENCE_MS);
  });
}

async function placeOrder(): Promise<string> {
  const answer = await request(`${apiUrl}/v1/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      'x-forwarded-for': '203.0.113.7',
    },
    body: ORDER,
    dispatcher: agent,
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 202) throw new Error(String(answer.statusCode));
  return (JSON.parse(text) as { data: { id: string } }).data.id;
}

async function get(path: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': '203.0.113.7' };
  const answer = await request(apiUrl + path, { headers, dispatcher: agent });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(String(answer.statusCode));
}
