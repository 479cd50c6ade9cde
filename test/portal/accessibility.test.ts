import AxeBuilder from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueEsim } from '../harness/order-steps.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { registerEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

const SIZE = { width: 1280, height: 900 };
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Of WCAG 2.2, and off by default. */
const ALSO = { 'target-size': { enabled: true } };

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let receiver: TestReceiver;
let ids: Ids;
let portal: PortalPage;

interface Ids {
  readonly endpoint: string;
  readonly delivery: string;
  readonly request: string;
  readonly order: string;
  readonly esim: string;
}

/** Every screen, and what else it can look like. */
const SCREENS: Record<string, (ids: Ids) => string> = {
  'API Keys': () => '/developers/api-keys',
  Webhooks: () => '/developers/webhooks',
  'an endpoint': ({ endpoint }) => `/developers/webhooks/${endpoint}`,
  'a delivery': ({ endpoint, delivery }) => `/developers/webhooks/${endpoint}?delivery=${delivery}`,
  'filtered deliveries': ({ endpoint }) => `/developers/webhooks/${endpoint}?status=failed`,
  Events: () => '/developers/events',
  Requests: () => '/developers/requests',
  'a request': ({ request }) => `/developers/requests/${request}`,
  'no request': () => '/developers/requests/req_unknown',
  'Signature doctor': () => '/developers/signature-doctor',
  Orders: () => '/orders',
  'an order': ({ order }) => `/orders/${order}`,
  eSIMs: () => '/esims',
  'an eSIM': ({ esim }) => `/esims/${esim}`,
  'Top-ups': () => '/top-ups',
  'Balance of Sandbox': () => '/balance',
  'Balance of Live': () => '/balance?mode=live',
  'an empty list': () => '/orders?mode=live',
  'no such page': () => '/nowhere',
};

interface Listed {
  readonly id: string;
  readonly request_id: string;
  readonly last_attempt: unknown;
}

async function firstOf(path: string): Promise<Listed> {
  return eventually(`something in ${path}`, async () => {
    const answer = await service.admin.get(`/internal/v1/partners/${partner.id}/${path}`);
    return (answer.body.data as Listed[])[0];
  });
}

/** What axe finds, in a line each. */
async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Legacy: in the page itself. There is no frame in it, and a second page for each look costs seconds.
  const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ rules: { ...ALSO } });
  const found = await (rules ? axe.withRules([...rules]) : axe.withTags(RULES)).analyze();
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`);
}

describe.skipIf(missing !== null)('every screen of the portal', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    partner = await service.createPartner('Accessible Travel');
    receiver = await startReceiver();
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    const packages = await partner.sandbox.get('/v1/catalog?kind=base&limit=1');
    const esimId = await issueEsim(partner.sandbox, (packages.body.data as { id: string }[])[0]!.id);
    const order = await firstOf('orders');
    const delivery = await firstOf(`webhook-endpoints/${endpoint.id}/deliveries`);
    const call = await firstOf('requests');
    browser = await launchChromium();
    ids = {
      endpoint: endpoint.id,
      delivery: delivery.id,
      request: call.request_id,
      order: order.id,
      esim: esimId,
    };
    portal = await openPortalPage(browser, service, partner.id);
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it.each(Object.keys(SCREENS))(
    'has nothing that axe finds in light and dark, nothing that its policy stops, and fits into 320 pixels: %s',
    async (name) => {
      const { page } = portal;
      await portal.open(SCREENS[name]!(ids));
      await settled(page);
      expect(await violations(page)).toEqual([]);
      await page.emulateMedia({ colorScheme: 'dark' });
      // The same elements: what differs is their colours.
      expect(await violations(page, ['color-contrast'])).toEqual([]);
      await page.setViewportSize({ ...SIZE, width: 320 });
      const root = 'document.documentElement';
      expect(await page.evaluate<boolean>(`${root}.scrollWidth > ${root}.clientWidth`)).toBe(false);
      await page.setViewportSize(SIZE);
      await page.emulateMedia({ colorScheme: 'light' });
      expect(portal.complaints).toEqual([]);
    },
  );

  it.each(['New key', 'New endpoint'])('and neither has the dialog of %s', async (opener) => {
    await portal.open(opener === 'New key' ? '/developers/api-keys' : '/developers/webhooks');
    await portal.page.getByRole('button', { name: opener }).click();
    await portal.page.getByRole('dialog').waitFor();
    expect(await violations(portal.page)).toEqual([]);
  });
});

/** Nothing is loading any more. */
async function settled(page: Page): Promise<void> {
  await eventually('nothing is loading', async () => (await page.locator('.loading').count()) === 0);
}
