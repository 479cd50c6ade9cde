import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { issueEsim } from '../harness/order-steps.js';
import { recordEvent, registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import {
  BROWSER_TEST_MS,
  launchChromium,
  missing,
  openPortalPage,
  type PortalPage,
  widthOf,
} from './browser.js';

const RETURN_URL = 'https://office.example.com/portal';
const EVENTS = 30;

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let portal: PortalPage;
let page: Page;
let dialog: Locator;

interface AuditEntry {
  readonly action: string;
  readonly subject_id: string;
  readonly portal_user: string | null;
}

async function audited(action: string): Promise<readonly AuditEntry[]> {
  const { data } = (await service.admin.get(`/internal/v1/audit-log?partner_id=${partner.id}&limit=100`))
    .body as { data: AuditEntry[] };
  return data.filter((entry) => entry.action === action);
}

describe.skipIf(missing !== null)('a portal screen', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    // One replayed event per second, so that the replay is still running when it is canceled.
    service = await startTestService({ env: { WEBHOOK_REPLAY_PER_SECOND: '1' } });
    partner = await service.createPartner('Clicking Travel');
    receiver = await startReceiver();
    endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    browser = await launchChromium();
    portal = await openPortalPage(browser, service, partner.id, { terms: { return_url: RETURN_URL } });
    page = portal.page;
    dialog = page.getByRole('dialog');
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it('shows install data and its QR code only after an audited click', async () => {
    await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
    const id = await eventually('the eSIM is issued', async () => {
      const { data } = (await partner.sandbox.get('/v1/esims')).body as { data: { id: string }[] };
      return data[0]?.id ?? null;
    });
    const code = (await partner.sandbox.get(`/v1/esims/${id}`)).body.data.activation_code as string;
    await portal.open(`/esims/${id}`);
    const show = page.getByRole('button', { name: 'Show install data' });
    await show.waitFor();
    expect(await page.content()).not.toContain(code);
    const before = (await audited('esim.install_data_shown')).length;
    await show.click();
    await page.getByText(code, { exact: true }).waitFor();
    const qrCode = page.getByRole('img', { name: 'QR code of the activation code' });
    await qrCode.waitFor();
    await eventually('it can be decoded', async () => (await widthOf(qrCode)) > 0);
    const entries = await audited('esim.install_data_shown');
    expect(entries).toHaveLength(before + 1);
    expect(entries[0]).toMatchObject({ subject_id: id, portal_user: 'user-17' });
    await page.getByRole('button', { name: 'Hide' }).click();
    await page.getByText(code, { exact: true }).waitFor({ state: 'detached' });
  });

  it('requests a refund of an eSIM, lists the request, and cancels it', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    await portal.open(`/esims/${id}`);
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Request refund' }).click();
    await dialog.getByRole('combobox', { name: 'Reason' }).selectOption({ label: 'Wrong device' });
    await dialog.getByRole('textbox', { name: /^Details/ }).fill('Locked to a carrier.');
    await dialog.getByRole('button', { name: 'Request refund' }).click();
    await dialog.waitFor({ state: 'detached' });
    const table = page.getByRole('table', { name: 'Refund requests' });
    const row = table.getByRole('row').filter({ hasText: 'Locked to a carrier.' });
    await row.getByText('Pending').waitFor();
    const [entry] = await audited('refund_request.created');
    expect(entry).toMatchObject({ subject_id: expect.stringMatching(/^rfr_/), portal_user: 'user-17' });
    await portal.open(`/refunds?esim_id=${id}`);
    await row.getByText('Pending').waitFor();
    await portal.open(`/esims/${id}`);
    await row.getByRole('button', { name: 'Cancel request' }).click();
    await row.getByText('Canceled').waitFor();
    expect(await audited('refund_request.canceled')).toHaveLength(1);
  });

  it('suspends an eSIM after a confirmation, with a reason', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    await portal.open(`/esims/${id}`);
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Suspend eSIM' }).click();
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('stolen phone');
    await dialog.getByRole('button', { name: 'Suspend eSIM' }).click();
    await page.getByText('Requested. The eSIM changes when the network confirms it.').waitFor();
    const [entry] = await audited('esim.suspend_requested');
    expect(entry).toMatchObject({ subject_id: id, portal_user: 'user-17' });
    await page.getByText('Suspended', { exact: true }).first().waitFor();
  });

  it('sets an automatic top-up, changes it, and removes it', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    await portal.open(`/esims/${id}`);
    await page.getByRole('button', { name: 'Set up' }).click();
    await dialog.getByRole('combobox', { name: 'When' }).selectOption('50');
    await dialog.getByRole('button', { name: 'Save rule' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('50 % of its data is used').waitFor();
    await page.getByRole('button', { name: 'Edit rule' }).click();
    const times = dialog.getByRole('textbox', { name: 'Maximum number of top-ups' });
    await times.fill('0');
    await dialog.getByRole('button', { name: 'Save rule' }).click();
    await dialog.getByText('must be at least 1').waitFor();
    await times.fill('2');
    await dialog.getByRole('button', { name: 'Save rule' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('0 of 2').waitFor();
    await page.getByRole('button', { name: 'Remove rule' }).click();
    await page.getByText('Off. We top up only when you ask.').waitFor();
    expect(await audited('esim.auto_topup_set')).toHaveLength(2);
    expect(await audited('esim.auto_topup_deleted')).toHaveLength(1);
  });

  it('sets the brand of the install page, and names the field that is wrong', async () => {
    await portal.open('/install-page');
    const form = page.getByRole('form', { name: 'Brand' });
    await form.getByRole('textbox', { name: /^Logo address/ }).fill('http://acme.example/logo.svg');
    await form.getByRole('textbox', { name: /^Accent color/ }).fill('#0a66c2');
    await form.getByRole('button', { name: 'Save brand' }).click();
    await form.getByText('must be an absolute https URL').waitFor();
    await form.getByRole('textbox', { name: /^Logo address/ }).fill('https://acme.example/logo.svg');
    await form.getByRole('button', { name: 'Save brand' }).click();
    await page.getByText('Saved. The install page shows it at once.').waitFor();
    const { data } = (await service.admin.get(`/internal/v1/partners/${partner.id}`)).body;
    expect(data.brand).toEqual({
      ...{ name: null, logo_url: 'https://acme.example/logo.svg' },
      ...{ accent: '#0a66c2', help_url: null },
    });
    expect(await audited('partner.updated')).toHaveLength(1);
  });

  it('creates an install link, shows its address once, and revokes it', async () => {
    const id = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    await portal.open(`/esims/${id}`);
    await page.getByRole('button', { name: 'Create install link' }).click();
    await dialog.getByRole('button', { name: 'Create link' }).click();
    await dialog.getByRole('region', { name: 'install link' }).waitFor();
    const address = await dialog.getByRole('region', { name: 'install link' }).innerText();
    expect(address).toMatch(/^https?:\/\//);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(address);
    const links = page.getByRole('table', { name: 'Install links' });
    await links.getByText('Valid', { exact: true }).waitFor();
    await links.getByRole('button', { name: 'Revoke link' }).click();
    await links.waitFor({ state: 'detached' });
    // The pressed button is gone, so the focus moves to the screen.
    await page.getByRole('main').and(page.locator(':focus')).waitFor();
  });

  it('sums up the period on Home, with a table behind each chart and the next step to go live', async () => {
    await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    const orders = page.getByRole('region', { name: 'Orders', exact: true });
    await eventually('the order is counted', async () => {
      await portal.open('/');
      await orders.or(page.getByText('No orders in this period')).waitFor();
      return orders.isVisible();
    });
    await orders.locator('summary').click();
    const days = orders.getByRole('table', { name: 'Orders' }).getByRole('row');
    await eventually('every day has its number', async () => (await days.count()) === 1 + 7);
    await page.getByRole('radio', { name: '24 hours' }).click();
    await page.waitForURL('**window=24h**');
    await eventually('every hour has its number', async () => (await days.count()) === 1 + 24);
    await page.getByRole('heading', { name: /^Going live: \d of 6$/ }).waitFor();
    await page.getByRole('link', { name: 'Place a Live order' }).click();
    await page.waitForURL('**/orders?mode=live');
  });

  it('shows what the partner sells by destination, with the price for the chosen number of days', async () => {
    await portal.open('/catalog?mode=sandbox');
    await page.getByRole('textbox', { name: 'Name' }).fill('japan');
    await page.getByRole('link', { name: 'Japan', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Japan' }).waitFor();
    await page.getByRole('radio', { name: 'Day pass' }).click();
    await page.waitForURL('**plan=daily**');
    const row = page.getByRole('table', { name: 'Packages' }).getByRole('row').nth(1);
    const more = row.getByRole('button', { name: 'One day more' });
    await more.waitFor();
    const price = row.locator('.price');
    const before = await price.innerText();
    await more.click();
    expect(await price.innerText()).not.toBe(before);
    await row.getByRole('link').click();
    await page.getByRole('heading', { name: 'Your price' }).waitFor();
  });

  it('downloads the statement as a file', async () => {
    const deposit = { amount: { amount: 12_345, currency: 'USD' }, reference: 'invoice 7' };
    await service.admin.post(`/internal/v1/partners/${partner.id}/wallet/deposits`, deposit);
    await portal.open('/balance?mode=live');
    await page.getByText('$123.45').first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/\.csv$/);
    expect(readFileSync(await download.path(), 'utf8')).toContain(',deposit,12345,USD,12345,,,invoice 7');
  });

  it('explains the error in a signature, and shows no secret', async () => {
    const body = '{"id":"evt_1","type":"order.issued","data":{}}';
    const t = Math.floor(Date.now() / 1_000);
    const header = `t=${t},v1=${createHmac('sha256', endpoint.secret).update(`${t}.${body}`).digest('hex')}`;
    await portal.open('/developers/signature-doctor');
    const said = page.getByRole('status').filter({ has: page.locator('code') });
    await page.getByRole('textbox', { name: 'Headers' }).fill(`X-Service-Signature: ${header}`);
    await page.getByRole('textbox', { name: 'Body' }).fill(JSON.stringify(JSON.parse(body), null, 2));
    await page.getByRole('button', { name: 'Diagnose' }).click();
    await said.getByText('reserialized_json').waitFor();
    await page.getByRole('textbox', { name: 'Body' }).fill(body);
    await page.getByRole('button', { name: 'Diagnose' }).click();
    await said.getByText('valid', { exact: true }).waitFor();
    const old = t - 7_200;
    const late = createHmac('sha256', endpoint.secret).update(`${old}.${body}`).digest('hex');
    await page.getByRole('textbox', { name: 'Headers' }).fill(`t=${old},v1=${late}`);
    await page.getByRole('button', { name: 'Diagnose' }).click();
    await said.getByText(/^The signature was made 2 h.* ago\.$/).waitFor();
    await page
      .getByLabel('Signature your code computed')
      .fill(createHmac('sha256', endpoint.secret).update(body).digest('base64'));
    await page.getByRole('button', { name: 'Diagnose' }).click();
    await said.getByText('timestamp_missing').waitFor();
    await page.getByLabel('Signature your code computed').fill('');
    await page.getByLabel('When it arrived').fill(new Date((t - 500) * 1_000).toISOString());
    await page.getByRole('button', { name: 'Diagnose' }).click();
    await said.getByText('clock_off').waitFor();
    expect(await page.content()).not.toContain(endpoint.secret);
  });

  it('cancels a running replay', async () => {
    for (let sent = 0; sent < EVENTS; sent += 1) await recordEvent(service, { partnerId: partner.id });
    await eventually('they are received', () => receiver.received.length >= EVENTS);
    await portal.open(`/developers/webhooks/${endpoint.id}`);
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await dialog.getByRole('checkbox', { name: 'Delivered' }).click();
    await dialog.getByRole('button', { name: 'Count first' }).click();
    await dialog.getByText(/deliveries will be sent/).waitFor();
    const before = receiver.received.length;
    await dialog.getByRole('button', { name: 'Start replay' }).click();
    const progress = page.getByRole('region', { name: 'Replay progress' });
    await progress.getByRole('button', { name: 'Cancel replay' }).click();
    await progress.getByText('Replay canceled').waitFor();
    await eventually('nothing of it waits', async () => {
      const { body } = await service.admin.get(
        `/internal/v1/partners/${partner.id}/webhook-endpoints/${endpoint.id}`,
      );
      return body.data.pending_count === 0;
    });
    // At one event per second, it did not finish before the cancellation.
    expect(receiver.received.length).toBeLessThan(before + EVENTS);
  });

  it('requires a fresh session where needed, changes nothing, and links to the sign-in page', async () => {
    const list = `/internal/v1/partners/${partner.id}/api-keys`;
    const { id } = (await service.admin.post(list, { mode: 'live', name: 'till' })).body.data as {
      id: string;
    };
    await service.database.pool.query(
      `UPDATE portal_sessions SET created_at = now() - interval '16 minutes' WHERE partner_id = $1`,
      [partner.id],
    );
    await portal.open('/developers/api-keys?mode=live');
    const row = page.getByRole('row').filter({ hasText: 'till' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByRole('button', { name: 'Revoke key' }).click();
    const stepUp = dialog.getByRole('alert').filter({ hasText: 'Revoking a Live key needs a sign-in' });
    const link = stepUp.getByRole('link', { name: 'Sign in again' });
    expect(await link.getAttribute('href')).toBe(`${RETURN_URL}?reason=step_up`);
    await dialog.getByRole('button', { name: 'Keep it' }).click();
    const { data } = (await service.admin.get(`${list}?mode=live`)).body as {
      data: { id: string; status: string }[];
    };
    expect(data.find((key) => key.id === id)).toMatchObject({ status: 'active' });
    expect(portal.complaints).toEqual([]);
  });
});
