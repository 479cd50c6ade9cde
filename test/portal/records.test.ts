import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { openPortal, type PortalBrowser } from '../harness/portal.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  receiver = await startReceiver();
  partner = await service.createPartner('Recorded Travel');
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

const open = (): Promise<PortalBrowser> => openPortal(service.admin, service.process.portal!.url, partner.id);

describe('one-time secrets and audit entries of the portal', () => {
  it('shows a key and a secret once, and audits who acted in which session', async () => {
    const browser = await open();
    const { id: sessionId } = (await browser.get('session')).body.data;
    const made = await browser.post('api-keys', { mode: 'sandbox', name: 'From the portal' });
    const endpoint = await browser.post('webhook-endpoints', { mode: 'sandbox', url: receiver.url });
    const shown = [made.body.data.key as string, endpoint.body.data.secret as string];
    expect(made.body.data).toMatchObject({ created_by: 'user-17', uses_24h: 0 });
    const later = [
      await browser.get('api-keys?mode=sandbox'),
      await browser.get('webhook-endpoints?mode=sandbox'),
      await browser.get(`webhook-endpoints/${endpoint.body.data.id}`),
      await service.admin.get(`/internal/v1/audit-log?partner_id=${partner.id}`),
    ];
    for (const { text } of later) for (const secret of shown) expect(text).not.toContain(secret);
    const entries = later[3]!.body.data as {
      subject_id: string;
      portal_user: string;
      session_id: string;
      actor: string;
    }[];
    expect(entries.find((entry) => entry.subject_id === made.body.data.id)).toMatchObject({
      actor: 'portal',
      portal_user: 'user-17',
      session_id: sessionId,
    });
  });

  it('returns install data only to a POST, which is audited', async () => {
    const browser = await open();
    await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
    let esim = '';
    await eventually('the eSIM is there', async () => {
      const { body } = await browser.get('esims?mode=sandbox');
      esim = (body.data as { id: string }[])[0]?.id ?? '';
      return esim !== '';
    });
    const read = await browser.get(`esims/${esim}`);
    expect(read.text).not.toContain('LPA:');
    const revealed = await browser.post(`esims/${esim}/install-data`);
    expect(revealed.body.data).toMatchObject({
      esim_id: esim,
      svg: expect.stringContaining('<svg'),
    });
    const entries = await service.admin.get(`/internal/v1/audit-log?subject_id=${esim}`);
    expect(entries.body.data[0]).toMatchObject({ action: 'esim.install_data_shown', portal_user: 'user-17' });
    expect(entries.text).not.toContain('LPA:');
  });

  it('returns the install data of a live eSIM only in a session younger than fifteen minutes', async () => {
    const browser = await open();
    const { id: sessionId } = (await browser.get('session')).body.data;
    const placed = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
    const orderId = placed.body.data.id as string;
    await eventually(
      'the order is issued',
      async () => (await partner.sandbox.get(`/v1/orders/${orderId}`)).body.data.status === 'issued',
    );
    const { esimId } = await copyToLive(service.database, await rowsOf(service.database, orderId));
    const [own] = (await partner.sandbox.get(`/v1/esims?order_id=${orderId}`)).body.data as { id: string }[];
    await service.database.pool.query(
      `UPDATE portal_sessions SET created_at = now() - interval '16 minutes' WHERE id = $1`,
      [sessionId],
    );
    const refused = await browser.post(`esims/${esimId}/install-data`);
    expect([refused.status, refused.body.code]).toEqual([403, 'step_up_required']);
    expect((await service.admin.get(`/internal/v1/audit-log?subject_id=${esimId}`)).body.data).toEqual([]);
    expect((await browser.post(`esims/${own!.id}/install-data`)).status).toBe(200);
    const young = await open();
    const shown = await young.post(`esims/${esimId}/install-data`);
    expect(shown.body.data).toMatchObject({ matching_id: 'LIVE-MATCHING-ID' });
  });

  it("omits its own calls from the partner's request log", async () => {
    const browser = await open();
    await browser.get('orders?mode=sandbox');
    await partner.sandbox.get('/v1/orders');
    await eventually("the portal's call has its row", async () => {
      const { rows } = await service.database.pool.query(
        `SELECT 1 FROM api_calls WHERE route = '/portal/v1/orders' AND key_id LIKE 'portal:ps_%'`,
      );
      return rows.length > 0;
    });
    let listed = '';
    await eventually("the partner's own call has its row", async () => {
      listed = (await browser.get('requests?mode=sandbox&limit=100')).text;
      return listed.includes('/v1/orders');
    });
    expect(listed).not.toContain('/portal/v1');
  });
});

describe('the statement download', () => {
  it('is a CSV with one line per transaction, in which no reference is a formula', async () => {
    const wallet = `/internal/v1/partners/${partner.id}/wallet`;
    const deposit = { amount: { amount: 5_000, currency: 'USD' }, reference: '=1+1,"x"' };
    expect((await service.admin.post(`${wallet}/deposits`, deposit)).status).toBe(201);
    const browser = await open();
    const file = await browser.get('wallet/transactions?format=csv');
    expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [head, line, end] = file.text.split('\r\n');
    expect(head).toMatch(/^id,created_at,type,amount_minor_units,currency,/);
    expect(line).toMatch(/^txn_\w+,[^,]+,deposit,5000,USD,5000,,,"'=1\+1,""x"""$/);
    expect(end).toBe('');
    expect((await browser.get('wallet')).body.data[0]).toMatchObject({
      currency: 'USD',
      posted: { amount: 5_000 },
    });
  });
});
