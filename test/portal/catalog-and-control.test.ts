import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { openPortal, type PortalBrowser } from '../harness/portal.js';

let service: TestService;
let partner: TestPartner;
let browser: PortalBrowser;

beforeAll(async () => {
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '100' } });
  partner = await service.createPartner('Control Travel');
  browser = await openPortal(service.admin, service.process.portal!.url, partner.id);
});
afterAll(() => service.stop());

async function actionsOf(subjectId: string): Promise<string[]> {
  const { body } = await service.admin.get(`/internal/v1/audit-log?subject_id=${subjectId}`);
  return (body.data as { action: string }[]).map(({ action }) => action).reverse();
}

describe('the catalog in the portal', () => {
  it('is that of the partner API, with its filters, sort, pages and shelf', async () => {
    for (const query of [
      'country=JP&sort=-price&limit=3',
      'region=europe&plan=total',
      'country=JP&shelf=true',
      'kind=topup&limit=2',
    ]) {
      const ofApi = await partner.sandbox.get(`/v1/catalog?${query}`);
      const ofPortal = await browser.get(`catalog?mode=sandbox&${query}`);
      expect([query, ofPortal.status, ofPortal.body.data]).toEqual([query, 200, ofApi.body.data]);
      expect(ofPortal.body.data.length).toBeGreaterThan(0);
      expect(ofPortal.body.dropped).toEqual(ofApi.body.dropped);
    }
    const first = await browser.get('catalog?mode=sandbox&limit=2');
    const second = await browser.get(`catalog?mode=sandbox&limit=2&cursor=${first.body.next_cursor}`);
    expect(second.body.data[0].id).not.toBe(first.body.data[1].id);
    expect((await browser.get('catalog?mode=sandbox&shelf=true')).status).toBe(400);
  });

  it('shows one package, and the destinations', async () => {
    const ofApi = await partner.sandbox.get('/v1/catalog/pkg_fr_1gb_7d');
    const ofPortal = await browser.get('catalog/pkg_fr_1gb_7d?mode=sandbox');
    expect(ofPortal.body.data).toEqual(ofApi.body.data);
    const headers = { 'if-none-match': ofPortal.headers.get('etag')! };
    expect((await browser.call('GET', 'catalog/pkg_fr_1gb_7d?mode=sandbox', { headers })).status).toBe(304);
    expect((await browser.get('catalog/pkg_fr_1gb_7d?mode=live')).status).toBe(404);
    const destinations = await browser.get('destinations?mode=sandbox');
    expect(destinations.body.data).toEqual((await partner.sandbox.get('/v1/destinations')).body.data);
  });
});

describe('the control of an eSIM in the portal', () => {
  const esimOf = async (id: string): Promise<Json> => (await browser.get(`esims/${id}`)).body.data as Json;

  it('suspends, resumes and revokes it like the partner API, and audits who did', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    await partner.sandbox.post(`/v1/sandbox/esims/${id}/activate`);
    for (const [action, status] of [
      ['suspend', 'suspended'],
      ['resume', 'active'],
      ['revoke', 'revoked'],
    ] as const) {
      const answer = await browser.post(`esims/${id}/${action}`, { reason: 'lost' });
      expect([action, answer.status, answer.body.data?.pending_action]).toEqual([action, 202, action]);
      await eventually(`the eSIM is ${status}`, async () => {
        const { pending_action: pending, actions } = await esimOf(id);
        return pending === null && !(actions as string[]).includes(action);
      });
    }
    const again = await browser.post(`esims/${id}/suspend`, {});
    expect([again.status, again.body.code]).toEqual([409, 'not_supported']);
    expect(await actionsOf(id)).toEqual([
      'esim.suspend_requested',
      'esim.resume_requested',
      'esim.revoke_requested',
    ]);
  });

  it('replaces an unused eSIM by one order, however often the call is repeated', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    const options = { headers: { 'idempotency-key': 'replace-once' } };
    const [first, second] = [
      await browser.call('POST', `esims/${id}/replace`, options),
      await browser.call('POST', `esims/${id}/replace`, options),
    ];
    expect([first.status, first.body.data.replaces]).toEqual([202, id]);
    expect(second.body.data.id).toBe(first.body.data.id);
    expect(await actionsOf(id)).toEqual(['esim.replace_requested']);
  });

  it('cancels an order, and audits who did', async () => {
    const { order_id: id } = await esimOf(await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d'));
    const canceled = await browser.post(`orders/${id as string}/cancel`);
    expect([canceled.status, canceled.body.data.status]).toEqual([202, 'canceling']);
    await eventually('the order is canceled', async () => {
      const { body } = await browser.get(`orders/${id as string}`);
      return body.data.status === 'canceled';
    });
    const again = await browser.post(`orders/${id as string}/cancel`);
    expect([again.status, again.body.code]).toEqual([409, 'order_not_cancelable']);
    expect(await actionsOf(id as string)).toEqual(['order.cancel_requested']);
  });

  it('changes label and metadata, and the automatic top-up', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    const change = { label: 'Ada', metadata: { trip: '7' } };
    const described = await browser.call('PATCH', `esims/${id}`, { body: change });
    expect(described.body.data).toMatchObject(change);
    expect((await browser.get(`esims/${id}/auto-topup`)).status).toBe(404);
    const [topup] = (await browser.get(`esims/${id}/topup-packages`)).body.data as Json[];
    const rule = { at_percent: 80, package_id: topup!['id'], max_times: 2, max_price: topup!['price'] };
    const set = await browser.call('PUT', `esims/${id}/auto-topup`, { body: rule });
    expect([set.status, set.body.data]).toEqual([
      200,
      expect.objectContaining({ ...rule, status: 'active' }),
    ]);
    expect((await browser.get(`esims/${id}/auto-topup`)).body.data).toEqual(set.body.data);
    expect((await browser.call('DELETE', `esims/${id}/auto-topup`)).status).toBe(200);
    expect((await browser.get(`esims/${id}/auto-topup`)).status).toBe(404);
    expect(await actionsOf(id)).toEqual(['esim.described', 'esim.auto_topup_set', 'esim.auto_topup_deleted']);
  });

  it('needs a session younger than fifteen minutes for what costs money in Live', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    const { order_id: orderId } = await esimOf(id);
    const copy = await copyToLive(service.database, await rowsOf(service.database, orderId as string));
    const { esimId } = copy;
    const old = await openPortal(service.admin, service.process.portal!.url, partner.id);
    const { id: sessionId } = (await old.get('session')).body.data;
    await service.database.pool.query(
      `UPDATE portal_sessions SET created_at = now() - interval '16 minutes' WHERE id = $1`,
      [sessionId],
    );
    const rule = { at_percent: 80, package_id: 'pkg_any', max_times: 1 };
    const body = { ...rule, max_price: { amount: 1, currency: 'USD' } };
    for (const answer of [
      await old.post(`esims/${esimId}/revoke`, {}),
      await old.post(`esims/${esimId}/replace`),
      await old.post(`orders/${copy.orderId}/cancel`),
      await old.call('PUT', `esims/${esimId}/auto-topup`, { body }),
    ])
      expect([answer.status, answer.body.code]).toEqual([403, 'step_up_required']);
    expect((await old.call('PATCH', `esims/${esimId}`, { body: { label: 'Ada' } })).status).toBe(200);
    expect((await old.post(`esims/${id}/revoke`, {})).status).toBe(202);
  });
});
