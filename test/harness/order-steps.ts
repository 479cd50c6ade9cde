import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { eventually, PATIENCE_MS } from './eventually.js';
import type { ApiAnswer, HttpClient } from './http-client.js';

// Answers of every shape, as in http-client.ts.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = Record<string, any>;

/** Places an order and returns it as accepted. */
export async function placeOrder(api: HttpClient, body: object): Promise<Json> {
  const answer = await api.post('/v1/orders', body);
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

/**
 * Posts the body `count` times at once under one key. On a busy machine, calls that wait longer than five seconds for
 * the first one get an error and retry (D18).
 */
export async function postAtOnce(
  api: HttpClient,
  path: string,
  body: object,
  count: number,
  idempotencyKey: string = randomUUID(),
): Promise<readonly ApiAnswer[]> {
  const post = async (): Promise<ApiAnswer> => {
    const answer = await api.post(path, body, { idempotencyKey });
    return answer.status === 409 && answer.body.code === 'idempotency_in_progress' ? post() : answer;
  };
  return Promise.all(Array.from({ length: count }, post));
}

/** Waits until the order is neither pending nor processing, and returns it. */
export async function orderEnded(api: HttpClient, id: string, withinMs = PATIENCE_MS): Promise<Json> {
  return eventually(
    `order ${id} ends`,
    async () => {
      const answer = await api.get(`/v1/orders/${id}`);
      expect(answer.status, answer.text).toBe(200);
      const { data } = answer.body;
      return data.status === 'pending' || data.status === 'processing' ? null : (data as Json);
    },
    withinMs,
  );
}

/** Places one order and returns the ids of its eSIMs. */
export async function issueEsims(api: HttpClient, packageId: string, quantity = 1): Promise<string[]> {
  const { id } = await placeOrder(api, { package_id: packageId, quantity });
  const order = await orderEnded(api, id as string);
  return (order['esims'] as { esim_id: string }[]).map((esim) => esim.esim_id);
}

export async function issueEsim(api: HttpClient, packageId: string): Promise<string> {
  const [id] = await issueEsims(api, packageId);
  return id!;
}

/** All events of the feed (D39), oldest first. */
export async function readFeed(api: HttpClient): Promise<Json[]> {
  const events: Json[] = [];
  for (let cursor = ''; ;) {
    const page = (await api.get(`/v1/events?limit=100${cursor}`)).body;
    events.push(...(page.data as Json[]));
    if (!page.has_more) return events;
    cursor = `&cursor=${page.next_cursor}`;
  }
}
