import { randomUUID } from 'node:crypto';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { answerParent } from '../child-link.js';
import type { CallerQuestion, CallerSettings, CallReport } from './caller.js';

const TICK_MS = 5;
/** Of 100 calls. */
const ORDERS = 10;
const READS = 30;
const LISTS = 40;
const POLLS = 18;
const ORDER = JSON.stringify({ package_id: 'pkg_fr_1gb_7d', quantity: 1 });
const TIMEOUT_MS = 30_000;

let settings: CallerSettings;
let agent: Agent;
/** By partner: what was ordered last, and how far the feed was read. */
const lastOrders = new Map<string, string>();
const cursors = new Map<string, string>();
let turn = 0;

answerParent<CallerQuestion, CallReport | object>(async (question) => {
  if (question.do === 'open') {
    settings = question;
    agent = new Agent({ connections: 128, bodyTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS });
    return {};
  }
  return question.do === 'press' ? press(question) : pace(question);
});

class Tally {
  private readonly latencies = createHistogram();
  private readonly errors: Record<string, number> = {};
  private calls = 0;
  private readonly startedAtMs = performance.now();

  async count(call: () => Promise<void>): Promise<void> {
    const sentAtMs = performance.now();
    try {
      await call();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const name = code ?? message.slice(0, 60);
      this.errors[name] = (this.errors[name] ?? 0) + 1;
    }
    this.calls++;
    this.latencies.record(Math.max(1, Math.round((performance.now() - sentAtMs) * 1e6)));
  }

  report(): CallReport {
    return {
      calls: this.calls,
      seconds: (performance.now() - this.startedAtMs) / 1_000,
      p95Ms: this.latencies.percentile(95) / 1e6,
      errors: this.errors,
    };
  }
}

async function press({
  connections,
  durationMs,
}: {
  connections: number;
  durationMs: number;
}): Promise<CallReport> {
  const tally = new Tally();
  const endAtMs = performance.now() + durationMs;
  const callers = Array.from({ length: connections }, async () => {
    while (performance.now() < endAtMs) await tally.count(nextCall());
  });
  await Promise.all(callers);
  return tally.report();
}

async function pace({
  perSecond,
  durationMs,
}: {
  perSecond: number;
  durationMs: number;
}): Promise<CallReport> {
  const tally = new Tally();
  const startedAtMs = performance.now();
  const count = Math.round((perSecond * durationMs) / 1_000);
  const underWay = new Set<Promise<void>>();
  for (let sent = 0; sent < count;) {
    for (; sent < count && startedAtMs + (sent * 1_000) / perSecond <= performance.now(); sent++) {
      const call = tally.count(nextCall());
      underWay.add(call);
      void call.finally(() => underWay.delete(call));
    }
    await sleep(TICK_MS);
  }
  await Promise.all(underWay);
  return tally.report();
}

/** The mix of a shop: many looks, some orders, a poller of the feed, the portal once in a while. */
function nextCall(): () => Promise<void> {
  turn++;
  const partner = settings.partners[turn % settings.partners.length]!;
  const kind = (turn * 37) % 100;
  if (kind < ORDERS) return () => placeOrder(partner.key);
  if (kind < ORDERS + READS) return () => readOrder(partner.key);
  if (kind < ORDERS + READS + LISTS) return () => list(partner.key);
  if (kind < ORDERS + READS + LISTS + POLLS) return () => poll(partner.key);
  return async () => {
    const url = `${settings.adminUrl}/internal/v1/partners/${partner.partnerId}/requests?limit=25`;
    await send(url, settings.adminToken);
  };
}

async function placeOrder(key: string): Promise<void> {
  const { data } = (await send(`${settings.apiUrl}/v1/orders`, key, ORDER)) as { data: { id: string } };
  lastOrders.set(key, data.id);
}

async function readOrder(key: string): Promise<void> {
  const id = lastOrders.get(key);
  await send(`${settings.apiUrl}/v1/${id === undefined ? 'me' : `orders/${id}`}`, key);
}

async function list(key: string): Promise<void> {
  const lists = ['orders?limit=25', 'esims?limit=25', 'orders?limit=25&status=issued', 'catalog'];
  await send(`${settings.apiUrl}/v1/${lists[turn % lists.length]}`, key);
}

async function poll(key: string): Promise<void> {
  const cursor = cursors.get(key);
  const after = cursor === undefined ? '' : `&after=${cursor}`;
  const page = (await send(`${settings.apiUrl}/v1/events?limit=100${after}`, key)) as { next_cursor: string };
  cursors.set(key, page.next_cursor);
}

async function send(url: string, token: string, body?: string): Promise<unknown> {
  const answer = await request(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
    },
    body: body ?? null,
    dispatcher: agent,
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(String(answer.statusCode));
  return JSON.parse(text);
}
