import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let portal: PortalPage;
let page: Page;
let orderId: string;
let esims: { id: string; activation_code: string }[];
const endpoints: RegisteredEndpoint[] = [];
let liveEndpoint: RegisteredEndpoint;

const switchTo = (mode: 'Sandbox' | 'Live'): Promise<void> =>
  page.getByRole('radio', { name: mode, exact: true }).click();

async function goTo(id: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByLabel('Screen, id, reference or ICCID').fill(id);
  await page.getByRole('option', { name: id }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator(`.id[title="${id}"]`).waitFor();
}

async function shownInstallData(id: string): Promise<number> {
  const entries = await service.admin.get(`/internal/v1/audit-log?subject_id=${id}`);
  const actions = (entries.body.data as { action: string }[]).map(({ action }) => action);
  return actions.filter((action) => action === 'esim.install_data_shown').length;
}

/** Holds all responses to `pattern` until `release`. */
async function hold(pattern: string): Promise<{ asked: Promise<void>; release: () => void }> {
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  let seen!: () => void;
  const asked = new Promise<void>((resolve) => (seen = resolve));
  await page.route(pattern, async (route: Route) => {
    seen();
    await released;
    await route.continue();
  });
  return { asked, release };
}

describe.skipIf(missing !== null)('the content of a screen', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    partner = await service.createPartner('Changing Travel');
    const order = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 2 });
    orderId = order.body.data.id as string;
    esims = await eventually('the eSIMs are issued', async () => {
      const { data } = (await partner.sandbox.get('/v1/esims')).body as { data: { id: string }[] };
      if (data.length < 2) return null;
      return Promise.all(
        data.map(async ({ id }) => (await partner.sandbox.get(`/v1/esims/${id}`)).body.data as never),
      );
    });
    for (const name of ['one', 'two'])
      endpoints.push(
        await registerEndpoint(service, partner.id, { url: `https://${name}.partner.example/hook` }),
      );
    liveEndpoint = await registerEndpoint(service, partner.id, {
      url: 'https://live.partner.example/hook',
      mode: 'live',
    });
    await service.admin.post(`/internal/v1/partners/${partner.id}/api-keys`, { mode: 'live' });
    browser = await launchChromium();
    portal = await openPortalPage(browser, service, partner.id);
    page = portal.page;
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  it('never shows one eSIM under the heading of another', async () => {
    const [first, second] = esims as [(typeof esims)[number], (typeof esims)[number]];
    // Load both first, so that navigating between them shows no loading state.
    await portal.open(`/esims/${second.id}`);
    await page.getByRole('button', { name: 'Show install data' }).waitFor();
    await goTo(first.id);
    await page.getByRole('button', { name: 'Show install data' }).click();
    await page.getByText(first.activation_code, { exact: true }).waitFor();
    await goTo(second.id);
    await page.getByRole('button', { name: 'Show install data' }).waitFor();
    expect(await page.content()).not.toContain(first.activation_code);
    expect(await page.getByRole('img', { name: 'QR code of the activation code' }).count()).toBe(0);
    expect(await shownInstallData(second.id)).toBe(0);
  });

  it('returns from a Sandbox object to the list when the mode is switched', async () => {
    const pages = [
      [`/orders/${orderId}`, '/orders'],
      [`/esims/${esims[0]!.id}`, '/esims'],
      [`/developers/webhooks/${endpoints[0]!.id}`, '/developers/webhooks'],
    ] as const;
    for (const [address, list] of pages) {
      await portal.open(`${address}?mode=sandbox`);
      await page.getByText('simulated eSIMs').waitFor();
      await switchTo('Live');
      await page.waitForURL(`**${list}?mode=live`);
    }
  });

  it('reports that an object belongs to another mode instead of showing it', async () => {
    const pages = [
      [`/orders/${orderId}`, 'This is a Sandbox order', 'pkg_fr_1gb_7d'],
      [`/esims/${esims[0]!.id}`, 'This is a Sandbox eSIM', 'Show install data'],
      [`/developers/webhooks/${endpoints[0]!.id}`, 'This is a Sandbox endpoint', 'Send test event'],
    ] as const;
    for (const [address, said, fact] of pages) {
      await portal.open(`${address}?mode=live`);
      await page.getByText(said).waitFor();
      expect(await page.getByText(fact).count()).toBe(0);
      await page.getByRole('link', { name: 'View it in Sandbox' }).click();
      await page.getByText(fact).first().waitFor();
      expect(await page.getByText(said).count()).toBe(0);
    }
  });

  it.each([
    [
      '/developers/webhooks/whe_of_nobody',
      'webhook-endpoints/whe_of_nobody',
      'link',
      'Webhooks',
      'Endpoint not found',
    ],
    ['/orders/ord_of_nobody', 'orders/ord_of_nobody', 'button', 'Try again', 'Try again'],
  ] as const)(
    'does not reload a missing object (%s) repeatedly, which would move the focus',
    async (address, path, role, name, shownWhenMissing) => {
      await portal.open(address);
      await page.getByText(shownWhenMissing).first().waitFor();
      const control = page.getByRole('main').getByRole(role, { name }).last();
      await control.focus();
      // An existing object is polled every two or three seconds.
      const again = page.waitForRequest(`**/portal/v1/${path}`, { timeout: 5_000 }).then(
        () => 'asked again',
        () => 'not asked again',
      );
      expect(await again).toBe('not asked again');
      expect(await control.evaluate((node) => node === node.ownerDocument.activeElement)).toBe(true);
    },
  );

  it('shows a delivery under its own endpoint only', async () => {
    const sent = await service.admin.post(`${liveEndpoint.path}/test`);
    const id = sent.body.data.id as string;
    await portal.open(`/developers/webhooks/${endpoints[0]!.id}?mode=sandbox&delivery=${id}`);
    const drawer = page.getByRole('dialog', { name: `Delivery ${id}` });
    await drawer.getByText('This delivery belongs to another endpoint').waitFor();
    expect(await drawer.getByRole('heading', { name: 'Attempts' }).count()).toBe(0);
    await drawer.getByRole('link', { name: 'View on that endpoint' }).click();
    await page.getByText('This is a Live endpoint').waitFor();
    await page.getByRole('link', { name: 'View it in Live' }).click();
    await drawer.getByRole('heading', { name: 'Attempts' }).waitFor();
  });

  it.each([
    ['/developers/api-keys', 'api-keys', 'Revoke'],
    ['/developers/webhooks', 'webhook-endpoints', 'Rotate secret'],
  ])('hides Sandbox data on %s while Live is slow to respond', async (address, path, button) => {
    await portal.open(`${address}?mode=sandbox`);
    await page.getByRole('button', { name: button }).first().waitFor();
    const slow = await hold(`**/portal/v1/${path}?mode=live*`);
    await switchTo('Live');
    await slow.asked;
    await page.getByText('charged to your balance').waitFor();
    expect(await page.getByRole('table').count()).toBe(0);
    slow.release();
    await page.getByRole('button', { name: button }).first().waitFor();
  });

  it('uses the shown mode for the signature doctor', async () => {
    await portal.open('/developers/signature-doctor?mode=sandbox');
    const field = page.getByLabel('Endpoint');
    await field.selectOption(endpoints[0]!.id);
    await page.getByLabel('Body').fill('{"of":"sandbox"}');
    await switchTo('Live');
    await page
      .getByRole('option', { name: 'https://live.partner.example/hook' })
      .waitFor({ state: 'attached' });
    expect(await field.inputValue()).toBe(liveEndpoint.id);
    expect(await page.getByLabel('Body').inputValue()).toBe('');
    await page.getByLabel('Headers').fill('t=1,v1=ab');
    await page.getByLabel('Body').fill('{}');
    const [asked] = await Promise.all([
      page.waitForRequest('**/portal/v1/signature-doctor'),
      page.getByRole('button', { name: 'Diagnose' }).click(),
    ]);
    expect(asked.postDataJSON()).toMatchObject({ endpoint_id: liveEndpoint.id });
    // The address names an endpoint of the other mode, which must be ignored.
    await portal.open(`/developers/signature-doctor?mode=live&endpoint=${endpoints[0]!.id}`);
    await page
      .getByRole('option', { name: 'https://live.partner.example/hook' })
      .waitFor({ state: 'attached' });
    expect(await field.inputValue()).toBe(liveEndpoint.id);
    expect(portal.complaints).toEqual([]);
  });
});
