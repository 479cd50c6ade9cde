import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, it } from 'vitest';
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
import { expectAccessible } from './accessible.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

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
      await portal.open(SCREENS[name]!(ids));
      await expectAccessible(portal);
    },
  );
});
