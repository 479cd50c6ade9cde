import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { deliveryThat, recordEvent, registerEndpoint, type RegisteredEndpoint } from './support.js';

const SETTINGS = { LEASE_MS: '60000', SHUTDOWN_TIMEOUT_MS: '20000', WEBHOOK_TIMEOUT_MS: '20000' };

let office: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let worker: TestService | null = null;

beforeAll(async () => {
  office = await startTestService({ role: 'admin', env: SETTINGS });
});
beforeEach(async () => {
  partner = await office.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(office, partner.id, { url: receiver.url });
});
afterEach(async () => {
  await stopWorker();
  await receiver.close();
});
afterAll(() => office.stop());

async function startWorker(env: Record<string, string> = {}): Promise<void> {
  worker = await startTestService({
    role: 'worker',
    env: { ...SETTINGS, ...env },
    database: office.database,
  });
}

/** Ends the worker when everything that it is at is recorded. */
async function stopWorker(): Promise<void> {
  await worker?.stop();
  worker = null;
}

async function rows<T>(text: string, parameters: unknown[]): Promise<T[]> {
  return (await office.database.pool.query(text, parameters)).rows as T[];
}

describe('an outcome', () => {
  it('of an older lease of the same worker is not recorded: its fence is another', async () => {
    let held: ServerResponse | undefined;
    receiver.answer = (_nth, _webhook, response) => void (held = response);
    await startWorker();
    await recordEvent(office, { partnerId: partner.id });
    await eventually('the request', () => held !== undefined);
    // As if the worker had lost the endpoint, and taken it and started the delivery anew: its second attempt is under way.
    await rows('UPDATE webhook_deliveries SET started_fence = started_fence + 1 WHERE endpoint_id = $1', [
      endpoint.id,
    ]);
    held!.writeHead(200).end();
    await stopWorker();
    const [delivery] = await rows<object>(
      'SELECT status, attempt_count, started_at IS NOT NULL AS started FROM webhook_deliveries WHERE endpoint_id = $1',
      [endpoint.id],
    );
    expect(delivery).toEqual({ status: 'pending', attempt_count: 0, started: true });
  });
});

describe('the log of attempts', () => {
  it('has what was sent, and nothing that a receiver would accept as a signature', async () => {
    await startWorker();
    await recordEvent(office, { partnerId: partner.id });
    const delivery = await deliveryThat(office, endpoint, 'is delivered', (d) => d.status === 'delivered');
    const sent = String(receiver.received[0]!.headers['x-service-signature']);
    const [signature] = /(?<=v1=)[0-9a-f]{64}/.exec(sent)!;
    const kept = await rows<{ row: string }>(
      'SELECT a::text AS row FROM webhook_attempts a WHERE endpoint_id = $1',
      [endpoint.id],
    );
    expect(kept).toHaveLength(1);
    expect(kept[0]!.row).toContain('X-Service-Signature');
    expect(kept[0]!.row).not.toContain(signature);
    const shown = JSON.stringify(delivery);
    expect(shown).toContain(/^t=\d+/.exec(sent)![0]);
    expect(shown).not.toContain(signature);
  });
});

describe('a success that ends just after a delivery was given up', () => {
  it('leaves the endpoint blocked and its count at 0, also when one transaction records both', async () => {
    const held: ServerResponse[] = [];
    const seen = new Set<unknown>();
    receiver.answer = (_nth, { headers }, response) => {
      const id = headers['x-service-delivery'];
      if (seen.has(id)) held.push(response);
      else response.writeHead(500).end();
      seen.add(id);
    };
    await startWorker({ WEBHOOK_RETRY_DELAYS_MS: '30', SWEEP_INTERVAL_MS: '100' });
    // What ends within 10 ms is one transaction, most times; only then the order of the two ends decides.
    let isShown = false;
    for (let round = 0; round < 15 && !isShown; round++) {
      partner = await office.createPartner();
      endpoint = await registerEndpoint(office, partner.id, { url: receiver.url });
      await recordEvent(office, { partnerId: partner.id });
      await recordEvent(office, { partnerId: partner.id });
      await eventually('both last attempts', () => held.length === 2);
      const [first, second] = held.splice(0);
      first!.writeHead(500).end();
      second!.writeHead(200).end();
      isShown = await areRecordedTogether();
      if (!isShown) continue;
      const [state] = await rows<object>(
        'SELECT blocked_until > now() AS blocked, consecutive_blocks FROM webhook_endpoints WHERE id = $1',
        [endpoint.id],
      );
      expect(state).toEqual({ blocked: true, consecutive_blocks: 0 });
    }
    expect(isShown, 'one transaction recorded a failure and then a success').toBe(true);
  });
});

/** Whether one transaction recorded both ends, the success as the later one. */
async function areRecordedTogether(): Promise<boolean> {
  const ended = await eventually('both ended', async () => {
    const all = await rows<{ together: boolean; in_order: boolean }>(
      `SELECT count(DISTINCT xmin::text) = 1 AS together, max(delivered_at) > max(failed_at) AS in_order
       FROM webhook_deliveries WHERE endpoint_id = $1 AND status <> 'pending' HAVING count(*) = 2`,
      [endpoint.id],
    );
    return all[0];
  });
  return ended.together && ended.in_order;
}
