import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import { invalidFields } from '../harness/expect-problem.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { type Json, orderEnded, placeOrder } from '../harness/order-steps.js';
import { openPortal, type PortalBrowser } from '../harness/portal.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let stranger: TestPartner;
/** Ids and texts of the partner's objects by which they are found. */
let known: Readonly<Record<string, string>>;

beforeAll(async () => {
  service = await startTestService();
  receiver = await startReceiver();
  partner = await service.createPartner('Zebra Travel');
  stranger = await service.createPartner('zebra Tours');
  known = await makeEverything();
  // The same reference belongs to another partner's order too.
  await placeOrder(stranger.sandbox, { package_id: 'pkg_fr_1gb_7d', reference: known['reference'] });
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function makeEverything(): Promise<Record<string, string>> {
  const { admin } = service;
  const partnerPath = `/internal/v1/partners/${partner.id}`;
  await admin.call('PATCH', partnerPath, { body: { email: 'Desk@zebra.example' } });
  const endpoint = await admin.post(`${partnerPath}/webhook-endpoints`, {
    url: receiver.url,
    mode: 'sandbox',
  });
  const reference = 'booking 4711';
  const placed = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', reference });
  const order = await orderEnded(partner.sandbox, placed.body.data.id as string);
  const { esim_id: esim, iccid } = order['esims'][0] as Record<string, string>;
  const topup = await partner.sandbox.post('/v1/topups', {
    esim_id: esim,
    package_id: 'pkg_fr_topup_1gb_7d',
    reference: 'extension-1',
  });
  const refund = await partner.sandbox.post('/v1/refund-requests', { esim_id: esim, reason: 'duplicate' });
  const delivery = await eventually('the event is delivered', async () => {
    const list = `${partnerPath}/webhook-endpoints/${endpoint.body.data.id}/deliveries?event_type=order.issued`;
    return (await admin.get(list)).body.data[0] as Json | undefined;
  });
  const request = placed.headers.get('x-request-id')!;
  await eventually('the call is logged', async () => {
    return (await admin.get(`/internal/v1/requests/${request}`)).status === 200;
  });
  return {
    order: order['id'] as string,
    esim: esim!,
    iccid: iccid!,
    topup: topup.body.data.id as string,
    refund_request: refund.body.data.id as string,
    event: delivery['event_id'] as string,
    delivery: delivery['id'] as string,
    endpoint: endpoint.body.data.id as string,
    request,
    reference,
    partner: partner.id,
  };
}

async function search(q: string): Promise<Json[]> {
  const answer = await service.admin.get(`/internal/v1/search?q=${encodeURIComponent(q)}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Json[];
}

async function searchIn(portal: PortalBrowser, q: string): Promise<Json[]> {
  const answer = await portal.get(`search?q=${encodeURIComponent(q)}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Json[];
}

const open = (partnerId: string, terms: object = {}): Promise<PortalBrowser> =>
  openPortal(service.admin, service.process.portal!.url, partnerId, terms);

const TYPES = ['order', 'esim', 'topup', 'refund_request', 'event', 'delivery', 'endpoint', 'request'];

describe("support's search", () => {
  it.each([...TYPES, 'partner'])('finds one %s of any partner by its id', async (type) => {
    const hits = await search(known[type]!);
    expect(hits).toMatchObject([{ type, id: known[type], partner_id: partner.id }]);
    expect(hits[0]!['mode']).toBe(type === 'partner' ? null : 'sandbox');
  });

  it('finds an eSIM by its ICCID, also in groups of digits and in Live', async () => {
    const { id } = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
    const { esim_id, iccid } = (await orderEnded(partner.sandbox, id as string))['esims'][0] as Json;
    const { esimId } = await copyToLive(service.database, await rowsOf(service.database, id as string));
    for (const q of [iccid as string, (iccid as string).replace(/(.{4})/g, '$1 ')]) {
      const hits = (await search(q)).toSorted((a, b) => (a['mode'] < b['mode'] ? -1 : 1));
      expect(hits).toMatchObject([
        { type: 'esim', id: esimId, mode: 'live', label: iccid },
        { type: 'esim', id: esim_id, mode: 'sandbox', label: iccid },
      ]);
    }
  });

  it('finds orders and top-ups of all partners by their reference', async () => {
    const orders = await search(known['reference']!);
    expect(orders.map((hit) => [hit['type'], hit['partner_id']])).toEqual([
      ['order', stranger.id],
      ['order', partner.id],
    ]);
    expect(await search('extension-1')).toMatchObject([{ type: 'topup', id: known['topup'] }]);
    expect(await search('extension')).toEqual([]);
  });

  it('finds partners by the start of their name or e-mail address in any case', async () => {
    const partners = async (q: string) => (await search(q)).map((hit) => hit['label']);
    expect(await partners('ZEBRA')).toEqual(['zebra Tours', 'Zebra Travel']);
    expect(await partners('zebra tr')).toEqual(['Zebra Travel']);
    expect(await partners('desk@')).toEqual(['Zebra Travel']);
    expect(await partners('%')).toEqual([]);
    expect(await partners('  ')).toEqual([]);
  });

  it('finds a partner by a name with letters beyond ASCII', async () => {
    const { id } = await service.createPartner('Évasion İzmir');
    for (const q of ['Évasion İzmir', 'Éva', 'ÉVAS'])
      expect(await search(q)).toMatchObject([{ type: 'partner', id }]);
  });

  it('finds nothing for an unknown id or text, and refuses an empty one', async () => {
    for (const q of [newId('ord'), newId('dlv'), newId('req'), newId('evt'), '89000000000000000000', 'x'])
      expect(await search(q)).toEqual([]);
    expect(invalidFields(await service.admin.get('/internal/v1/search?q='))).toEqual(['?q']);
  });
});

describe("the portal's search", () => {
  it("finds the partner's own objects, and nothing of another partner", async () => {
    const [own, other] = [await open(partner.id), await open(stranger.id)];
    for (const type of TYPES) {
      expect(await searchIn(own, known[type]!)).toMatchObject([{ type, id: known[type] }]);
      expect(await searchIn(other, known[type]!)).toEqual([]);
    }
    expect(await searchIn(own, known['reference']!)).toMatchObject([{ id: known['order'] }]);
    expect(await searchIn(other, known['iccid']!)).toEqual([]);
    for (const q of ['zebra', partner.id]) expect(await searchIn(own, q)).toEqual([]);
  });

  it('finds only objects in the modes and of the scopes of the session', async () => {
    const live = await open(partner.id, { modes: ['live'] });
    for (const type of TYPES) expect(await searchIn(live, known[type]!)).toEqual([]);
    expect(await searchIn(live, known['reference']!)).toEqual([]);
    const narrow = await open(partner.id, { scopes: ['webhooks:read'] });
    expect(await searchIn(narrow, known['delivery']!)).toHaveLength(1);
    for (const name of ['order', 'iccid', 'reference', 'request'])
      expect(await searchIn(narrow, known[name]!)).toEqual([]);
    const keys = await open(partner.id, { scopes: ['keys:read'] });
    expect((await keys.get('search?q=x')).status).toBe(403);
  });
});
