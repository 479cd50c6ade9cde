import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
} from '../../harness/index.js';
import type { Json } from '../../harness/order-steps.js';
import { EsimAccessUpstream } from '../../live/esim-access-upstream.js';
import { FAST, LiveShop, settled } from '../../live/shop.js';

type Line = Readonly<Record<string, unknown>>;

let upstream: EsimAccessUpstream;
let database: TestDatabase;
let shop: LiveShop;
const logLines: string[] = [];

beforeAll(async () => {
  [upstream, database] = await Promise.all([EsimAccessUpstream.start(), createTestDatabase()]);
  const env = { ...FAST, ...upstream.settings(upstream.url) };
  const office = await startTestService({ database, env, logLines });
  shop = new LiveShop(database, office, await startReceiver(), [upstream], (key) => office.partnerApi(key));
});

afterAll(async () => {
  await shop.close();
});

const linesOf = (event: string): Line[] =>
  logLines.map((line) => JSON.parse(line) as Line).filter((line) => line['event'] === event);

describe('a log line, with or without traces', () => {
  it('names the call and the order on upstream calls, and the order and the delivery on webhooks', async () => {
    const buyer = await shop.buyer(100_000);
    await eventually('the catalog is there', async () => {
      const answer = await buyer.api.get(`/v1/catalog/${upstream.packageId}`);
      return answer.status === 200;
    });
    const orders = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const body = { package_id: upstream.packageId, quantity: 1 };
        const answer = await buyer.api.post('/v1/orders', body);
        expect(answer.status, answer.text).toBe(202);
        await settled(buyer, answer.body.data as Json);
        return { id: answer.body.data.id as string, requestId: answer.headers.get('x-request-id') };
      }),
    );
    await eventually('all attempts are recorded', () => linesOf('webhook.attempt').length >= orders.length);
    const calls = linesOf('provider.call').filter((line) => line['purpose'] === 'order');
    for (const { id, requestId } of orders) {
      const own = calls.filter((line) => line['orderId'] === id);
      expect(own.length, 'its calls').toBeGreaterThan(0);
      for (const line of own) expect(line).toMatchObject({ requestId });
      expect(linesOf('webhook.attempt').filter((line) => line['orderId'] === id)).toEqual([
        expect.objectContaining({ deliveryId: expect.stringMatching(/^dlv_/) as string }) as Line,
      ]);
    }
    expect(calls.filter((line) => line['orderId'] === undefined)).toEqual([]);
    expect(logLines.filter((line) => line.includes('trace_id'))).toEqual([]);
  });
});
