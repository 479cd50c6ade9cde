import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { recordEvents, type RegisteredEndpoint, registerEndpoint } from './support.js';

/** The lock timeout of a session, for which Live could be blocked. */
const LOCK_TIMEOUT_MS = 5_000;

let service: TestService;
let partner: TestPartner;
let [sandbox, live]: TestReceiver[] = [];
let sandboxEndpoint: RegisteredEndpoint;

beforeAll(async () => {
  service = await startTestService({ env: { WEBHOOK_CONCURRENCY_PER_ENDPOINT: '1' } });
  partner = await service.createPartner();
  [sandbox, live] = [await startReceiver(), await startReceiver()];
  sandboxEndpoint = await registerEndpoint(service, partner.id, { url: sandbox.url });
  await registerEndpoint(service, partner.id, { url: live.url, mode: 'live' });
});

afterAll(async () => {
  await service.stop();
  await Promise.all([sandbox!.close(), live!.close()]);
});

/** Two events in one transaction, so that both endpoints are claimed in one event loop turn. */
const recordBoth = (): Promise<void> =>
  recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id, mode: 'live' }]);

it('sends Live webhooks while a Sandbox claim waits for a lock, from the first claim of a process (D41)', async () => {
  const other = await service.database.pool.connect();
  try {
    await other.query('BEGIN');
    // Blocks every worker that wants the lease of the endpoint.
    await other.query('INSERT INTO webhook_endpoint_leases (endpoint_id, fence) VALUES ($1, 0)', [
      sandboxEndpoint.id,
    ]);
    for (const count of [1, 2, 3]) {
      await recordBoth();
      await eventually(
        'that of Live has arrived',
        () => live!.received.length === count,
        LOCK_TIMEOUT_MS - 1_000,
      );
    }
    expect(sandbox!.received).toHaveLength(0);
  } finally {
    await other.query('ROLLBACK');
    other.release();
  }
  await eventually('those of Sandbox arrive as well', () => sandbox!.received.length === 3);
});

it("releases a Live webhook's slot while a Sandbox webhook's outcome waits for a lock (D41)", async () => {
  const held: ServerResponse[] = [];
  const before = live!.received.length;
  for (const receiver of [sandbox!, live!])
    receiver.answer = (_nth, _webhook, response) => held.push(response);
  await recordBoth();
  await eventually('both are under way', () => held.length === 2);
  const other = await service.database.pool.connect();
  try {
    await other.query('BEGIN');
    await other.query('SELECT FROM webhook_deliveries WHERE endpoint_id = $1 FOR UPDATE', [
      sandboxEndpoint.id,
    ]);
    for (const receiver of [sandbox!, live!])
      receiver.answer = (_nth, _webhook, response) => void response.end();
    // Respond to both, so that their outcomes are ready at the same time.
    for (const response of held) response.writeHead(204).end();
    await recordEvents(service, [{ partnerId: partner.id, mode: 'live' }]);
    await eventually(
      'the next one of Live has arrived',
      () => live!.received.length === before + 2,
      LOCK_TIMEOUT_MS - 1_000,
    );
  } finally {
    await other.query('ROLLBACK');
    other.release();
  }
});
