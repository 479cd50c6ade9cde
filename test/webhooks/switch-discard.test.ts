import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import {
  endpointState,
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  type RegisteredEndpoint,
  registerEndpoint,
} from './support.js';

const ATTEMPTS = 6;

let service: TestService;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
/** The last attempt, which waits for its answer. */
let last: ServerResponse | null;

beforeEach(async () => {
  last = null;
  // No sweep writes down meanwhile what is given up: the recorder itself has to know.
  service = await startTestService({
    env: { ...FAST, WEBHOOK_TIMEOUT_MS: '20000', SWEEP_INTERVAL_MS: '60000' },
  });
  receiver = await startReceiver();
  receiver.answer = (nth, _webhook, response) => {
    if (nth < ATTEMPTS - 1) response.writeHead(500).end();
    else last = response;
  };
  const partner = await service.createPartner();
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  await recordEvent(service, { partnerId: partner.id });
  await eventually('the last attempt is under way', () => last);
  await service.admin.post(`${endpoint.path}/disable`, {});
  await service.admin.post(`${endpoint.path}/enable`, { held: 'discard' });
});
afterEach(async () => {
  await service.stop();
  await receiver.close();
});

async function afterTheAnswer(status: number): ReturnType<typeof getDelivery> {
  last!.writeHead(status).end();
  const [{ id } = { id: '' }] = await listDeliveries(service, endpoint);
  return eventually('it is recorded', async () => {
    const delivery = await getDelivery(service, id);
    return delivery.attempt_count === ATTEMPTS && delivery;
  });
}

describe('a delivery that is given up while its sixth attempt is under way (D32)', () => {
  it('stays discarded when that fails, and blocks nothing', async () => {
    const delivery = await afterTheAnswer(500);
    expect(delivery.attempts.at(-1)).toMatchObject({ number: ATTEMPTS, outcome: 'failed', status_code: 500 });
    expect(delivery).toMatchObject({ status: 'discarded', next_attempt_at: null });
    const { rows } = await service.database.pool.query(
      'SELECT status, failed_at FROM webhook_deliveries WHERE id = $1',
      [delivery.id],
    );
    expect(rows[0]).toEqual({ status: 'discarded', failed_at: null });
    expect(await endpointState(service, endpoint)).toMatchObject({
      status: 'enabled',
      consecutive_blocks: 0,
      blocked_until: null,
    });
    const alerts = await service.admin.get(`/internal/v1/alerts?subject_id=${endpoint.id}`);
    expect(alerts.body.data).toEqual([]);
  });

  it('is delivered after all when that gets a 2xx', async () => {
    expect(await afterTheAnswer(200)).toMatchObject({ status: 'delivered' });
  });
});
