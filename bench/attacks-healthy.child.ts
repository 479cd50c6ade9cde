import type { HealthyCall } from './attacks.js';
import { Cleanups, serveParent } from './shared/child.js';
import { kindOf, ORDER, ORDERS_PATH, sendOk, startReceiver } from './shared/http.js';
import { openLoop } from './shared/load.js';
import { ascending } from './shared/report.js';

/** Rate of each of the three calls. */
const PER_SECOND = 5;
const WEBHOOK_LIMIT_MS = 20_000;
/** An address that the key's allowlist permits. */
const FORWARDED = { 'x-forwarded-for': '203.0.113.7' };

export interface HealthyReport {
  /** Latencies of successful calls in milliseconds, ascending. */
  readonly latencies: Readonly<Record<HealthyCall, readonly number[]>>;
  /** Number of refused calls, failed calls and late webhooks, by call and kind. */
  readonly errors: Readonly<Record<string, number>>;
}

const api = { listen, measure };
export type HealthyApi = typeof api;
serveParent(api);

const waiting = new Map<string, () => void>();
const arrived = new Set<string>();

function listen(): Promise<string> {
  return startReceiver(new Cleanups(), (body) => {
    const { type, data } = JSON.parse(body) as { type: string; data: { order_id: string } };
    if (type !== 'order.issued') return;
    arrived.add(data.order_id);
    waiting.get(data.order_id)?.();
  });
}

/** Starts each call five times a second, even if earlier calls are still running. */
async function measure(apiUrl: string, key: string, durationMs: number): Promise<HealthyReport> {
  const latencies: Record<HealthyCall, number[]> = {
    'GET /v1/me': [],
    'POST /v1/orders': [],
    'GET /v1/orders': [],
    'order to webhook': [],
  };
  const errors: Record<string, number> = {};
  const timed = async <T>(name: HealthyCall, call: () => Promise<T>): Promise<T | null> => {
    const startedAtMs = performance.now();
    try {
      const result = await call();
      latencies[name].push(performance.now() - startedAtMs);
      return result;
    } catch (error) {
      const what = `${name}: ${kindOf(error)}`;
      errors[what] = (errors[what] ?? 0) + 1;
      return null;
    }
  };
  const get = (url: string): Promise<unknown> => sendOk(apiUrl + url, key, undefined, FORWARDED);
  const place = (): Promise<{ data: { id: string } }> => sendOk(apiUrl + ORDERS_PATH, key, ORDER, FORWARDED);
  const endAtMs = performance.now() + durationMs;
  await openLoop(
    PER_SECOND,
    () => performance.now() >= endAtMs,
    () =>
      Promise.all([
        timed('GET /v1/me', () => get('/v1/me')),
        timed('GET /v1/orders', () => get('/v1/orders?limit=25')),
        timed('order to webhook', async () => {
          const answer = await timed('POST /v1/orders', place);
          if (answer) await webhookOf(answer.data.id);
        }),
      ]),
  );
  for (const call of Object.keys(latencies) as HealthyCall[]) latencies[call] = ascending(latencies[call]);
  return { latencies, errors };
}

/** @throws Error when the order's event does not arrive within `WEBHOOK_LIMIT_MS` */
function webhookOf(orderId: string): Promise<void> {
  if (arrived.has(orderId)) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no order.issued')), WEBHOOK_LIMIT_MS);
    waiting.set(orderId, () => {
      clearTimeout(timer);
      waiting.delete(orderId);
      resolve();
    });
  });
}
