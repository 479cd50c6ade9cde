import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PATIENCE_MS, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { mintCode } from '../harness/portal.js';
import { registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

const PATIENCE = { timeout: PATIENCE_MS };

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let portal: PortalPage;
let page: Page;
let endpoint: RegisteredEndpoint;

/** Lets the server process the next POST to `path` and drops its response. Returns the keys sent so far. */
async function loseAnswer(path: string): Promise<(string | undefined)[]> {
  const keys: (string | undefined)[] = [];
  let isLost = false;
  await page.route(`**/portal/v1/${path}`, async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    keys.push(route.request().headers()['idempotency-key']);
    if (isLost) return route.continue();
    isLost = true;
    await route.fetch();
    await route.abort('connectionreset');
  });
  return keys;
}

async function listed<T>(path: string): Promise<T[]> {
  const answer = await service.admin.get(`/internal/v1/partners/${partner.id}/${path}`);
  return answer.body.data as T[];
}

const dialog = (name: string) => page.getByRole('dialog', { name });
const unreachable = 'We could not reach the portal';

describe.skipIf(missing !== null)('a lost response', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  describe('after a click', () => {
    beforeEach(async () => {
      partner = await service.createPartner('Unlucky Travel');
      endpoint = await registerEndpoint(service, partner.id, { url: 'https://partner.example/hook' });
      portal = await openPortalPage(browser, service, partner.id);
      page = portal.page;
      return portal.close;
    });

    it('creates no second key, and the dialog explains what to do without the first', async () => {
      const before = (await listed('api-keys?mode=sandbox')).length;
      const keys = await loseAnswer('api-keys');
      await portal.open('/developers/api-keys');
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByLabel('Name').fill('checkout');
      await page.getByRole('button', { name: 'Create key' }).click();
      await dialog('New key').getByText(unreachable).waitFor();
      // Closing the dialog does not change the intent, so the key is the same.
      await dialog('New key').getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByLabel('Name').fill('checkout');
      await page.getByRole('button', { name: 'Create key' }).click();
      const lost = dialog('The new key cannot be shown');
      await lost.getByText(/Revoke checkout/).waitFor();
      expect(await listed('api-keys?mode=sandbox')).toHaveLength(before + 1);
      // After a response, the next click means a new key.
      await lost.getByRole('button', { name: 'Done' }).click();
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByLabel('Name').fill('checkout');
      await page.getByRole('button', { name: 'Create key' }).click();
      await dialog('Your new key').locator('.secret pre').waitFor();
      expect(await listed('api-keys?mode=sandbox')).toHaveLength(before + 2);
      expect(keys[0]).toMatch(/^[\w-]{16,}$/);
      expect(keys).toEqual([keys[0], keys[0], expect.not.stringMatching(keys[0]!)]);
    });

    it('creates no second endpoint and no second rotation', async () => {
      await loseAnswer('webhook-endpoints');
      await loseAnswer(`webhook-endpoints/${endpoint.id}/rotate-secret`);
      await portal.open('/developers/webhooks');
      await page.getByRole('button', { name: 'New endpoint' }).click();
      await page.getByLabel('URL').fill('https://second.partner.example/hook');
      await page.getByRole('button', { name: 'Create endpoint' }).click();
      await dialog('New endpoint').getByText(unreachable).waitFor();
      await page.getByRole('button', { name: 'Create endpoint' }).click();
      await dialog('The signing secret cannot be shown').getByRole('button', { name: 'Done' }).click();
      expect(await listed('webhook-endpoints')).toHaveLength(2);

      const row = page.getByRole('row').filter({ has: page.getByText('https://partner.example/hook') });
      await row.getByRole('button', { name: 'Rotate secret' }).click();
      await page.getByRole('button', { name: 'Rotate signing secret' }).click();
      await dialog('Rotate the signing secret').getByText(unreachable).waitFor();
      await page.getByRole('button', { name: 'Rotate signing secret' }).click();
      await dialog('The new signing secret cannot be shown').waitFor();
      const rotations = await service.admin.get(`/internal/v1/audit-log?subject_id=${endpoint.id}`);
      const actions = (rotations.body.data as { action: string }[]).map(({ action }) => action);
      expect(actions.filter((action) => action === 'webhook_endpoint.secret_rotated')).toHaveLength(1);
    });

    it('sends no second test event', async () => {
      const keys = await loseAnswer(`webhook-endpoints/${endpoint.id}/test`);
      await portal.open('/developers/webhooks');
      const press = page.getByRole('button', { name: 'Send test event' });
      await press.click();
      await page.getByText(unreachable).waitFor();
      await press.click();
      await page.getByText('Test event sent').first().waitFor();
      const sent = await service.admin.get(`${endpoint.path}/deliveries`);
      expect(sent.body.data).toHaveLength(1);
      await press.click();
      await expect.poll(() => keys.length, PATIENCE).toBe(3);
      expect(new Set(keys).size).toBe(2);
    });

    it('does not block a later turn of the switch', async () => {
      await loseAnswer(`webhook-endpoints/${endpoint.id}/disable`);
      await portal.open('/developers/webhooks');
      const toggle = page.getByRole('switch');
      const isNow = async (status: string): Promise<void> => {
        await expect
          .poll(async () => (await service.admin.get(endpoint.path)).body.data.status as string, PATIENCE)
          .toBe(status);
        await page.getByText(status === 'disabled' ? 'Disabled' : 'Enabled', { exact: true }).waitFor();
      };
      await toggle.click();
      await isNow('disabled');
      await toggle.click();
      await isNow('enabled');
      await toggle.click();
      await isNow('disabled');
      expect(portal.complaints).toEqual([]);
    });
  });

  describe('on opening the portal', () => {
    const refuse = (status: number, code: string) => ({
      status,
      contentType: 'application/problem+json',
      body: JSON.stringify({ status, code, detail: 'Not now.', request_id: 'req_1' }),
    });

    it.each([
      [429, 'rate_limited'],
      [503, 'unavailable'],
    ])(
      'does not treat the link as used after a %i: the code is kept and works on the next try',
      async (status, code) => {
        const stranger = await service.createPartner();
        page = await browser.newPage();
        page.setDefaultTimeout(PATIENCE_MS);
        let refusals = 0;
        await page.route('**/portal/v1/session', (route) =>
          (refusals += 1) === 1 ? route.fulfill(refuse(status, code)) : route.continue(),
        );
        const link = `${service.process.portal!.url}/#code=${await mintCode(service.admin, stranger.id)}`;
        await page.goto(link);
        await page.getByRole('heading', { name: 'The portal is unavailable right now' }).waitFor();
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.getByRole('group', { name: 'Mode' }).waitFor();
        await page.unroute('**/portal/v1/session');

        // Without a code in the address, the page behaves the same, because the cookie's session is still valid.
        refusals = 0;
        await page.route('**/portal/v1/session', (route) =>
          (refusals += 1) === 1 ? route.fulfill(refuse(status, code)) : route.continue(),
        );
        await page.reload();
        await page.getByRole('heading', { name: 'The portal is unavailable right now' }).waitFor();
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.getByRole('group', { name: 'Mode' }).waitFor();
        await page.close();
      },
    );

    it('does not hide that a link has been used', async () => {
      const stranger = await service.createPartner();
      const link = `${service.process.portal!.url}/#code=${await mintCode(service.admin, stranger.id)}`;
      const opened = await browser.newPage();
      opened.setDefaultTimeout(PATIENCE_MS);
      await opened.goto(link);
      await opened.getByRole('group', { name: 'Mode' }).waitFor();
      const again = await browser.newPage();
      again.setDefaultTimeout(PATIENCE_MS);
      await again.goto(link);
      await again.getByRole('heading', { name: 'This link no longer works' }).waitFor();
      expect(await again.getByRole('button', { name: 'Try again' }).count()).toBe(0);
      await Promise.all([opened.close(), again.close()]);
    });

    it('begins on Home without an error, also for a session with one scope', async () => {
      const stranger = await service.createPartner();
      const {
        page: narrow,
        open,
        close,
      } = await openPortalPage(browser, service, stranger.id, {
        terms: { scopes: ['wallet:read'] },
      });
      await narrow.getByRole('heading', { name: /^Going live/ }).waitFor();
      expect(await narrow.getByRole('alert').count()).toBe(0);
      const business = narrow.getByRole('navigation', { name: 'Business' });
      expect(await business.getByRole('link').allInnerTexts()).toEqual(['Balance']);
      await open('/orders');
      await narrow.getByText('Your access does not include Orders.').waitFor();
      await close();
    });
  });
});
