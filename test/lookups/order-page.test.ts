import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem } from '../harness/expect-problem.js';
import {
  type ApiAnswer,
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { type Json, orderEnded, placeOrder } from '../harness/order-steps.js';
import { openPortal } from '../harness/portal.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
/** An order whose eSIM was used and topped up, and for which a refund was requested. */
let used: Json;

beforeAll(async () => {
  service = await startTestService();
  receiver = await startReceiver();
  partner = await service.createPartner('Looked-up Travel');
  const endpoint = { url: receiver.url, mode: 'sandbox' };
  const added = await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, endpoint);
  expect(added.status, added.text).toBe(201);
  used = await useOrder(partner.sandbox);
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function useOrder(api: TestPartner['sandbox']): Promise<Json> {
  const { id } = await placeOrder(api, { package_id: 'pkg_fr_1gb_7d', reference: 'booking-1' });
  const order = await orderEnded(api, id as string);
  const esimId = order['esims'][0].esim_id as string;
  const device = new EsimDevice(api);
  await device.played(esimId, 'activate');
  await device.played(esimId, 'consume', { percent: 50 });
  const topup = await api.post('/v1/topups', { esim_id: esimId, package_id: 'pkg_fr_topup_1gb_7d' });
  expect(topup.status, topup.text).toBe(202);
  await eventually(
    'the top-up is completed',
    async () => (await api.get(`/v1/topups/${topup.body.data.id}`)).body.data.status === 'completed',
  );
  const refund = await api.post('/v1/refund-requests', { esim_id: esimId, reason: 'not_working' });
  expect(refund.status, refund.text).toBe(202);
  return { ...order, esimId, topupId: topup.body.data.id, refundId: refund.body.data.id };
}

const read = (id: unknown): Promise<ApiAnswer> => service.admin.get(`/internal/v1/orders/${String(id)}`);
const kindsOf = (page: Json): string[] => (page['timeline'] as Json[]).map(({ kind }) => kind as string);
const ofKind = (page: Json, kind: string): Json =>
  (page['timeline'] as Json[]).find((entry) => entry['kind'] === kind) ?? {};

/** The page once every webhook of the order was delivered. */
async function delivered(): Promise<Json> {
  return eventually('the webhooks are delivered', async () => {
    const { data } = (await read(used['id'])).body;
    const deliveries = data.deliveries as Json[];
    return deliveries.length >= 4 && deliveries.every(({ status }) => status === 'delivered')
      ? (data as Json)
      : null;
  });
}

describe('the page of an order', () => {
  it('tells what happened, oldest first, with the events and deliveries that reported it', async () => {
    const page = await delivered();
    expect(page).toMatchObject({ id: used['id'], partner_id: partner.id, reference: 'booking-1' });
    const kinds = kindsOf(page);
    const inOrder = [
      'accepted',
      'provisioned',
      'first_use',
      'threshold',
      'topup_accepted',
      'topup_completed',
    ];
    expect(kinds.filter((kind) => inOrder.includes(kind))).toEqual(inOrder);
    expect(kinds.indexOf('refund_requested')).toBeGreaterThan(kinds.indexOf('topup_completed'));
    const times = (page['timeline'] as Json[]).map(({ at }) => at as string);
    expect(times).toEqual(times.toSorted());
    const { esimId, topupId, refundId } = used;
    expect(ofKind(page, 'threshold')).toMatchObject({ esim_id: esimId, percent: 50 });
    expect(ofKind(page, 'topup_completed')).toMatchObject({ esim_id: esimId, topup_id: topupId });
    expect(ofKind(page, 'refund_requested')).toMatchObject({
      refund_request_id: refundId,
      detail: 'not_working',
    });
    const issued = ofKind(page, 'provisioned')['event_id'] as string;
    const delivery = (page['deliveries'] as Json[]).find(({ event_id }) => event_id === issued)!;
    const sent = (page['timeline'] as Json[]).find(({ delivery_id }) => delivery_id === delivery['id']);
    expect(sent).toMatchObject({ kind: 'webhook_delivered', event_id: issued, detail: 'order.issued' });
    expect(page['refund_requests']).toMatchObject([{ id: refundId, status: 'pending' }]);
  });

  it('names the call that placed the order', async () => {
    const { accepted_request_id: id } = (await read(used['id'])).body.data;
    const call = await eventually('the call is logged', async () => {
      const answer = await service.admin.get(`/internal/v1/requests/${id}`);
      return answer.status === 200 ? (answer.body.data as Json) : null;
    });
    expect(call).toMatchObject({ method: 'POST', route: '/v1/orders' });
  });

  it('still tells the story from the rows after the events are purged', async () => {
    const { id } = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
    const esimId = (await orderEnded(partner.sandbox, id as string))['esims'][0].esim_id as string;
    await new EsimDevice(partner.sandbox).played(esimId, 'activate');
    await service.database.pool.query(
      `DELETE FROM events WHERE substring(body FROM '"order_id":"([^"]+)"') = $1`,
      [id],
    );
    const page = (await read(id)).body.data as Json;
    expect(kindsOf(page)).toEqual(['accepted', 'provisioned', 'first_use']);
    expect((page['timeline'] as Json[]).every(({ event_id }) => event_id === null)).toBe(true);
  });

  it('tells when an order was canceled and how much was refunded', async () => {
    const { id } = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
    const order = await orderEnded(partner.sandbox, id as string);
    expect((await partner.sandbox.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    const page = await eventually('the order is canceled', async () => {
      const { data } = (await read(id)).body;
      return data.status === 'canceled' ? (data as Json) : null;
    });
    expect(kindsOf(page).filter((kind) => !kind.startsWith('webhook'))).toEqual([
      'accepted',
      'provisioned',
      'canceled',
    ]);
    expect(ofKind(page, 'canceled')['amount']).toEqual(order['total']);
  });

  it('is the same in the portal, without deliveries for a session that may not see webhooks', async () => {
    await delivered();
    const url = service.process.portal!.url;
    const full = await openPortal(service.admin, url, partner.id);
    expect((await full.get(`orders/${used['id']}`)).body.data).toEqual((await read(used['id'])).body.data);
    const narrow = await openPortal(service.admin, url, partner.id, { scopes: ['orders:read'] });
    const seen = (await narrow.get(`orders/${used['id']}`)).body.data as Json;
    expect(seen['deliveries']).toBeNull();
    expect(kindsOf(seen).some((kind) => kind.startsWith('webhook'))).toBe(false);
  });

  it('does not exist for a session of another partner or of the other mode', async () => {
    const url = service.process.portal!.url;
    const stranger = await service.createPartner('Stranger');
    const sessions = [
      await openPortal(service.admin, url, stranger.id),
      await openPortal(service.admin, url, partner.id, { modes: ['live'] }),
    ];
    for (const session of sessions) {
      const answer = await session.get(`orders/${used['id']}`);
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
    }
  });
});

describe('an eSIM and a top-up of any partner', () => {
  it('are found by id with their partner, in both modes', async () => {
    const esim = await service.admin.get(`/internal/v1/esims/${used['esimId']}`);
    expect(esim.body.data).toMatchObject({ id: used['esimId'], partner_id: partner.id, mode: 'sandbox' });
    const topup = await service.admin.get(`/internal/v1/topups/${used['topupId']}`);
    expect(topup.body.data).toMatchObject({ id: used['topupId'], partner_id: partner.id, mode: 'sandbox' });
    const live = await copyToLive(service.database, await rowsOf(service.database, used['id'] as string));
    const found = await service.admin.get(`/internal/v1/esims/${live.esimId}`);
    expect(found.body.data).toMatchObject({ partner_id: partner.id, mode: 'live' });
  });

  it('show no install data', async () => {
    const install = (await partner.sandbox.get(`/v1/esims/${used['esimId']}`)).body.data;
    const { text } = await service.admin.get(`/internal/v1/esims/${used['esimId']}`);
    for (const secret of [install.matching_id, install.activation_code]) expect(text).not.toContain(secret);
  });

  it.each(['orders/ord', 'esims/esim', 'topups/top'])('get a 404 for an unknown %s', async (path) => {
    for (const id of ['00000000000000000000000000', 'x'])
      expectProblem(await service.admin.get(`/internal/v1/${path}_${id}`), 404, 'not_found');
  });
});
