import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Alerts, type AlertType } from '../../src/alerts/index.js';
import { Transactions } from '../../src/infra/database/index.js';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { type Json } from '../harness/order-steps.js';

const ALERTS = '/internal/v1/alerts';

let service: TestService;
let partnerId: string;

beforeAll(async () => {
  // Ended alerts are searched by every fifth sweep.
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '50' } });
  ({ id: partnerId } = await service.createPartner('Alerted Travel'));
});
afterAll(() => service.stop());

const path = (rest: string): string => `/internal/v1/partners/${partnerId}/${rest}`;

async function alerts(query: string): Promise<Json[]> {
  const answer = await service.admin.get(`${ALERTS}?${query}&limit=100`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Json[];
}

/** Waits until the only alert of the type about the subject is open or resolved, and returns it. */
async function alertOnce(state: 'open' | 'resolved', type: AlertType, subject: string): Promise<Json> {
  const [alert] = await eventually(`the alert ${type} is ${state}`, async () => {
    const found = await alerts(`state=${state}&type=${type}&subject_id=${subject}`);
    return found.length === 1 ? found : null;
  });
  const other = state === 'open' ? 'resolved' : 'open';
  expect(await alerts(`state=${other}&type=${type}&subject_id=${subject}`)).toEqual([]);
  expect(await alerts(`type=${type}&subject_id=${subject}`)).toEqual([alert]);
  return alert!;
}

/** Raises an alert that takes a worker minutes to raise. */
async function raise(type: AlertType, subjectId: string): Promise<void> {
  const { nest } = service.process.admin!;
  const raising = nest.get(Alerts, { strict: false });
  await nest
    .get(Transactions, { strict: false })
    .run((tx) => raising.raise(tx, { type, partnerId, subjectId }));
}

async function createEndpoint(): Promise<string> {
  const answer = await service.admin.post(path('webhook-endpoints'), {
    url: 'https://hooks.example/here',
    mode: 'sandbox',
  });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data.id as string;
}

describe('an alert', () => {
  it('about a low balance is resolved once a deposit ends it', async () => {
    const deposit = (reference: string, amount: number) =>
      service.admin.post(path('wallet/deposits'), { reference, amount: { amount, currency: 'USD' } });
    await deposit('first', 100);
    const body = { low_balance: { amount: 500, currency: 'USD' } };
    expect((await service.admin.call('PATCH', path('').slice(0, -1), { body })).status).toBe(200);
    expect(await alertOnce('open', 'balance.low', partnerId)).toMatchObject({ resolved_at: null });
    await deposit('second', 400);
    const alert = await alertOnce('resolved', 'balance.low', partnerId);
    expect(Date.parse(alert['resolved_at'] as string)).toBeGreaterThan(
      Date.parse(alert['created_at'] as string),
    );
  });

  it('about an expiring key is resolved once the key is revoked', async () => {
    const expires_at = new Date(Date.now() + 86_400_000).toISOString();
    const made = await service.admin.post(path('api-keys'), { mode: 'live', expires_at });
    const id = made.body.data.id as string;
    await alertOnce('open', 'key.expiring', id);
    await service.admin.post(path(`api-keys/${id}/revoke`));
    await alertOnce('resolved', 'key.expiring', id);
  });

  it('about a disabled endpoint is resolved once the endpoint is enabled or deleted', async () => {
    const [enabled, deleted] = [await createEndpoint(), await createEndpoint()];
    for (const id of [enabled, deleted]) {
      expect((await service.admin.post(path(`webhook-endpoints/${id}/disable`))).status).toBe(200);
      await raise('endpoint.disabled', id);
      await alertOnce('open', 'endpoint.disabled', id);
    }
    await service.admin.post(path(`webhook-endpoints/${enabled}/enable`));
    await service.admin.call('DELETE', path(`webhook-endpoints/${deleted}`));
    for (const id of [enabled, deleted]) await alertOnce('resolved', 'endpoint.disabled', id);
  });

  it('about a blocked endpoint is resolved once the block is over', async () => {
    const id = await createEndpoint();
    const block = (until: string) =>
      service.database.pool.query(`UPDATE webhook_endpoints SET blocked_until = ${until} WHERE id = $1`, [
        id,
      ]);
    await block(`now() + interval '1 hour'`);
    await raise('endpoint.blocked', id);
    await alertOnce('open', 'endpoint.blocked', id);
    await block('now()');
    await alertOnce('resolved', 'endpoint.blocked', id);
  });
});
