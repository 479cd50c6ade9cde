import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENT_EVENT_TYPES } from '../../src/events/index.js';
import partner from '../../docs/openapi/partner.json' with { type: 'json' };
import {
  eventually,
  type HttpClient,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { AnswerRecorder } from './answer-recorder.js';

const FILE = '../../src/apps/recorded-answers.json';

let service: TestService;
let shop: TestPartner;
let sandbox: HttpClient;
let live: HttpClient;
const recorder = new AnswerRecorder();

beforeAll(async () => {
  const limits = { RATE_LIMIT_PER_MINUTE: '60', RATE_LIMIT_BURST: '120' };
  service = await startTestService({ env: { ...limits, INSTALL_URL: 'https://install.example.com' } });
  shop = await service.createPartner('Demo Travel');
  sandbox = shop.sandbox;
  live = service.partnerApi(await service.createKey(shop.id, 'live'));
});
afterAll(() => service.stop());

async function record(operationId: string, path: string, api = sandbox): Promise<Json> {
  const { status, body, text } = await api.get(path);
  expect(status, text).toBe(200);
  recorder.answer(operationId, body);
  return body.data as Json;
}

async function recordCall(
  operationId: string,
  [method, path]: readonly ['PUT' | 'DELETE', string],
  body?: unknown,
): Promise<void> {
  const answer = await sandbox.call(method, path, { body });
  expect(answer.status, answer.text).toBe(200);
  recorder.answer(operationId, answer.body);
}

async function recordPost(operationId: string, path: string, body?: unknown): Promise<Json> {
  const answer = await sandbox.post(path, body);
  expect([200, 201, 202], answer.text).toContain(answer.status);
  recorder.answer(operationId, answer.body);
  return answer.body.data as Json;
}

/** The example body of the document. */
const bodyOf = (path: keyof typeof partner.paths, method = 'post'): Json =>
  (partner.paths[path] as Json)[method].requestBody.content['application/json'].example as Json;

let cursor = '';

/** Reads the feed up to the next event of a type. Each poll waits, so that the run stays within the rate limit. */
const happened = (type: string): Promise<boolean> =>
  eventually(type, async () => {
    const { body } = await sandbox.get(`/v1/events?limit=1${cursor}`, { prefer: 'wait=5' });
    const [event] = body.data as { id: string; type: string }[];
    if (event === undefined) return false;
    cursor = `&after=${event.id}`;
    if (event.type === type) recorder.event(event);
    return event.type === type;
  });

async function orderAndFail(): Promise<string> {
  const accepted = await recordPost('placeOrder', '/v1/orders', bodyOf('/v1/orders'));
  await happened('order.issued');
  const order = await record('getOrder', `/v1/orders/${accepted['id']}`);
  await sandbox.post('/v1/orders', {
    package_id: 'pkg_test_out_of_stock',
    reference: 'booking-4712',
  });
  await happened('order.failed');
  await record('listOrders', '/v1/orders?limit=2');
  return order['esims'][0].esim_id as string;
}

async function useEsim(id: string): Promise<void> {
  await record('listEsims', '/v1/esims?limit=2');
  await record('getEsim', `/v1/esims/${id}`);
  const labeled = await sandbox.call('PATCH', `/v1/esims/${id}`, { body: bodyOf('/v1/esims/{id}', 'patch') });
  recorder.answer('updateEsim', labeled.body);
  await record('getQrCode', `/v1/esims/${id}/qr`);
  await recordPost('activateEsim', `/v1/sandbox/esims/${id}/activate`);
  await happened('esim.activated');
  await happened('esim.profile.changed');
  await recordPost(
    'consumeData',
    `/v1/sandbox/esims/${id}/consume`,
    bodyOf('/v1/sandbox/esims/{id}/consume'),
  );
  await happened('esim.usage.threshold');
  await record('getUsage', `/v1/esims/${id}/usage`);
}

async function topUp(id: string): Promise<void> {
  await record('listTopupPackages', `/v1/esims/${id}/topup-packages?limit=2`);
  const accepted = await recordPost('placeTopup', '/v1/topups', { ...bodyOf('/v1/topups'), esim_id: id });
  await happened('order.topup.completed');
  await record('getTopup', `/v1/topups/${accepted['id']}`);
  const failing = { esim_id: id, package_id: 'pkg_test_topup_fail', reference: 'extension-4712' };
  expect((await sandbox.post('/v1/topups', failing)).status).toBe(202);
  await happened('order.topup.failed');
  await record('listTopups', '/v1/topups?limit=2');
  await record('listEsimPlans', `/v1/esims/${id}/plans`);
  const path = `/v1/esims/${id}/auto-topup`;
  await recordCall('setAutoTopup', ['PUT', path], bodyOf('/v1/esims/{id}/auto-topup', 'put'));
  await record('getAutoTopup', path);
  await recordCall('deleteAutoTopup', ['DELETE', path]);
}

async function sendInstallLink(id: string): Promise<void> {
  const path = `/v1/esims/${id}/install-links`;
  const { id: linkId } = await recordPost('createInstallLink', path, bodyOf('/v1/esims/{id}/install-links'));
  await record('getInstallLink', `${path}/${linkId}`);
  await record('listInstallLinks', `${path}?limit=2`);
  await recordCall('revokeInstallLink', ['DELETE', `${path}/${linkId}`]);
}

async function refund(id: string): Promise<void> {
  const body = { ...bodyOf('/v1/refund-requests'), esim_id: id };
  const withdrawn = await sandbox.post('/v1/refund-requests', body);
  await recordPost('cancelRefundRequest', `/v1/refund-requests/${withdrawn.body.data.id}/cancel`);
  const { id: requestId } = await recordPost('requestRefund', '/v1/refund-requests', body);
  const approval = { note: 'Refunded once, as a courtesy.' };
  const approved = await service.admin.post(`/internal/v1/refund-requests/${requestId}/approve`, approval);
  expect(approved.status, approved.text).toBe(200);
  await happened('refund.settled');
  await record('getRefundRequest', `/v1/refund-requests/${requestId}`);
  await record('listRefundRequests', '/v1/refund-requests?limit=2');
}

async function control(id: string): Promise<void> {
  await recordPost('suspendEsim', `/v1/esims/${id}/suspend`, bodyOf('/v1/esims/{id}/suspend'));
  await happened('esim.suspended');
  await recordPost('resumeEsim', `/v1/esims/${id}/resume`);
  await happened('esim.resumed');
  const body = { ...bodyOf('/v1/orders'), reference: 'booking-4714' };
  const { id: orderId } = (await sandbox.post('/v1/orders', body)).body.data as Json;
  await happened('order.issued');
  const [old] = (await sandbox.get(`/v1/orders/${orderId}`)).body.data.esims as Json[];
  const order = await recordPost('replaceEsim', `/v1/esims/${old!['esim_id']}/replace`);
  await happened('order.issued');
  const [replacement] = (await sandbox.get(`/v1/orders/${order['id']}`)).body.data.esims as Json[];
  await recordPost(
    'revokeEsim',
    `/v1/esims/${replacement!['esim_id']}/revoke`,
    bodyOf('/v1/esims/{id}/revoke'),
  );
  await happened('esim.revoked');
}

async function endOne(id: string): Promise<void> {
  await recordPost('expireEsim', `/v1/sandbox/esims/${id}/expire`);
  await happened('esim.expired');
  const returned = await sandbox.post('/v1/orders', { ...bodyOf('/v1/orders'), reference: 'booking-4713' });
  await happened('order.issued');
  await recordPost('cancelOrder', `/v1/orders/${returned.body.data.id}/cancel`);
  await happened('order.canceled');
}

async function lookBack(): Promise<void> {
  const events = await record('listEvents', '/v1/events?limit=2');
  await record('getEvent', `/v1/events/${events[0].id}`);
  const wallet = `/internal/v1/partners/${shop.id}/wallet`;
  const paid = { amount: { amount: 10_000, currency: 'USD' }, reference: 'invoice-2026-11' };
  expect((await service.admin.post(`${wallet}/deposits`, paid)).status).toBe(201);
  await record('getBalance', '/v1/balance', live);
  await record('listTransactions', '/v1/transactions?limit=2', live);
  await sandbox.get('/v1/me');
  await sandbox.get('/v1/orders/ord_01KAEXAMPLE000000000000000');
  await eventually('the last call is listed', async () => {
    const { data } = (
      await service.admin.get(`/internal/v1/partners/${shop.id}/requests?mode=sandbox&limit=1`)
    ).body;
    return data[0]?.status === 404;
  });
  await record('listRequests', '/v1/requests?limit=2');
}

describe('the set of recorded responses in the API reference', () => {
  it('matches the running service', async () => {
    await record('getMe', '/v1/me');
    await record('listPackages', '/v1/catalog?country=FR&limit=2');
    await record('listCatalogChanges', '/v1/catalog/changes?limit=2');
    const places = (await sandbox.get('/v1/destinations')).body as { data: Json[] };
    recorder.answer('listDestinations', { ...places, data: places.data.slice(0, 2) });
    await record('getPackage', `/v1/catalog/${bodyOf('/v1/orders')['package_id']}`);
    const esim = await orderAndFail();
    await sendInstallLink(esim);
    await useEsim(esim);
    await topUp(esim);
    await refund(esim);
    await control(esim);
    await endOne(esim);
    await lookBack();
    const { answers, events } = recorder;
    await expect(`${JSON.stringify({ answers, events }, null, 2)}\n`).toMatchFileSnapshot(FILE);
  });

  it('covers every operation and every event of the document', () => {
    const operations = Object.values(partner.paths).flatMap((item) =>
      Object.values(item as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
    );
    expect(Object.keys(recorder.answers).toSorted()).toEqual(operations.toSorted());
    expect(Object.keys(recorder.events)).toEqual(expect.arrayContaining([...DOCUMENT_EVENT_TYPES]));
  });
});
