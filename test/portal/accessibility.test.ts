import type { Browser, Locator, Page } from 'playwright-core';
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
import {
  listDeliveries,
  recordEvent,
  registerEndpoint,
  type RegisteredEndpoint,
} from '../webhooks/support.js';
import { expectAccessible } from './accessible.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

/** Fast retries up to the last attempt, which the test triggers. */
const ENV = {
  // With a short lease, a stalled worker would lose an attempt, which would count as an extra one.
  LEASE_MS: '60000',
  WEBHOOK_RETRY_DELAYS_MS: '50,50,50,50,3600000',
  WEBHOOK_BLOCK_MS: '3600000',
  // One replayed event per second, so that the replay is still running when it is inspected.
  WEBHOOK_REPLAY_PER_SECOND: '1',
};

let service: TestService;
let partner: TestPartner;
/** The partner of the screens, whose endpoint accepts everything. */
let visitor: TestPartner;
let browser: Browser;
let receivers: readonly TestReceiver[];
let portal: PortalPage;
let page: Page;
let dialog: Locator;
let good: RegisteredEndpoint;
let retried: RegisteredEndpoint;
let blocked: RegisteredEndpoint;
let disabled: RegisteredEndpoint;

const sql = (text: string, values: readonly unknown[]): Promise<unknown> =>
  service.database.pool.query(text, [...values]);

/** Registers an endpoint that has accepted or refused one event. */
async function endpointAt(receiver: TestReceiver, attempts: number): Promise<RegisteredEndpoint> {
  const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  await recordEvent(service, { partnerId: partner.id });
  await eventually(`attempt ${attempts}`, async () => {
    const [first] = await listDeliveries(service, endpoint);
    return first?.attempt_count === attempts;
  });
  return endpoint;
}

/** Runs the last attempt of an endpoint's delivery, which causes block number `block`. */
async function giveUp({ id }: RegisteredEndpoint, block: number): Promise<void> {
  await sql('UPDATE webhook_endpoints SET consecutive_blocks = $2::int WHERE id = $1', [id, block - 1]);
  await sql(
    `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE endpoint_id = $1 AND status = 'pending'`,
    [id],
  );
}

const click = (name: string | RegExp, within: Page | Locator = page): Promise<void> =>
  within.getByRole('button', { name, exact: true }).first().click();
const openEndpoint = ({ id }: RegisteredEndpoint, query = ''): Promise<void> =>
  portal.open(`/developers/webhooks/${id}${query}`);

/** Opens a dialog of the endpoint page. */
async function openFrom(endpoint: RegisteredEndpoint, opener: string): Promise<void> {
  await openEndpoint(endpoint);
  await click(opener);
  await dialog.waitFor();
}

/** Opens a dialog of the endpoint page from its menu. */
async function openFromMenu(endpoint: RegisteredEndpoint, entry: string): Promise<void> {
  await openEndpoint(endpoint);
  await click('More actions');
  await page.getByRole('menuitem', { name: entry }).click();
  await dialog.waitFor();
}

async function openDelivery(endpoint: RegisteredEndpoint, status: string): Promise<void> {
  const [delivery] = await listDeliveries(service, endpoint, `&status=${status}`);
  await openEndpoint(endpoint, `?delivery=${delivery!.id}`);
  await dialog.getByRole('heading', { name: 'Attempts' }).waitFor();
  await dialog
    .getByRole('button', { name: /^Attempt \d$/ })
    .first()
    .waitFor();
}

/** Dialogs and states that are not separate screens, in the order of a visit. */
const LOOKS: Record<string, () => Promise<void>> = {
  'the form of a new key': async () => {
    await portal.open('/developers/api-keys');
    await click('New key');
    await dialog.waitFor();
  },
  'a key that is shown once': async () => {
    await dialog.getByRole('radio', { name: 'Live' }).click();
    await click('Create key', dialog);
    await dialog.getByRole('button', { name: 'Done' }).waitFor();
  },
  'rotating a key': async () => {
    await click('Done', dialog);
    await portal.open('/developers/api-keys?mode=sandbox');
    await click('Rotate');
    await dialog.waitFor();
  },
  'a key that was rotated': async () => {
    await click('Rotate key', dialog);
    await dialog.getByRole('button', { name: 'Done' }).waitFor();
  },
  'keys that were replaced or revoked, and a notice': async () => {
    await click('Done', dialog);
    await page.getByText('Replaced', { exact: true }).waitFor();
    await page.getByRole('row').filter({ hasText: 'Active' }).getByRole('button', { name: 'Revoke' }).click();
    await click('Revoke key', dialog);
    await page.getByText('Revoked', { exact: true }).waitFor();
    await dialog.waitFor({ state: 'detached' });
  },
  'revoking a key': async () => {
    await click('Revoke');
    await dialog.waitFor();
  },
  'the form of a new endpoint, with a mistake': async () => {
    await portal.open('/developers/webhooks');
    await click('New endpoint');
    await dialog.getByRole('textbox', { name: 'URL' }).fill('nonsense');
    await click('Create endpoint', dialog);
    await dialog.getByRole('alert').first().waitFor();
  },
  'a signing secret that is shown once': async () => {
    await dialog.getByRole('textbox', { name: 'URL' }).fill(receivers[0]!.url);
    await click('Create endpoint', dialog);
    await dialog.getByRole('button', { name: 'Done' }).waitFor();
  },
  'endpoints in every state': async () => {
    await click('Done', dialog);
    await portal.open('/developers/webhooks');
    for (const state of ['Enabled', 'Blocked', 'Disabled'])
      await page.getByText(state, { exact: true }).first().waitFor();
  },
  'editing an endpoint': () => openFromMenu(good, 'Edit endpoint'),
  'rotating a signing secret': () => openFromMenu(good, 'Rotate secret'),
  'a signing secret that was rotated': async () => {
    await click('Rotate signing secret', dialog);
    await dialog.getByRole('button', { name: 'Done' }).waitFor();
  },
  'a rotation that is under way': async () => {
    await click('Done', dialog);
    await openFromMenu(good, 'Rotate secret');
    await dialog.getByRole('button', { name: 'Finish rotation' }).waitFor();
  },
  'deleting an endpoint': () => openFromMenu(good, 'Delete endpoint'),
  'choosing what is sent when it is switched on': () => openFrom(disabled, 'Choose what to send'),
  'a replay that was counted': async () => {
    await openFrom(good, 'Replay');
    await dialog.getByRole('checkbox', { name: 'Delivered' }).check();
    await click('Count first', dialog);
    await dialog.getByText(/will be sent/).waitFor();
  },
  'a replay under way': async () => {
    await click('Start replay', dialog);
    await page.getByRole('region', { name: 'Replay progress' }).waitFor();
  },
  'a delivery that was resent, and a notice': async () => {
    await openDelivery(good, 'delivered');
    await click('Resend', dialog);
    await page.getByText('Resent as').waitFor();
  },
  'a delivery that is tried again': () => openDelivery(retried, 'pending'),
  'a delivery that has failed': () => openDelivery(blocked, 'failed'),
  'a log with one that is tried again': async () => {
    await openEndpoint(retried);
    await page.getByText('Retrying', { exact: true }).first().waitFor();
  },
  'an endpoint that is blocked': async () => {
    await openEndpoint(blocked);
    await page.getByRole('region', { name: 'Explanation' }).waitFor();
  },
  'an endpoint that is disabled': async () => {
    await openEndpoint(disabled);
    await page.getByRole('region', { name: 'Explanation' }).waitFor();
  },
  'an endpoint that was switched off, with Undo': async () => {
    await openEndpoint(good);
    await page.getByRole('switch').click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
  },
  'the signature doctor’s answer': async () => {
    await portal.open('/developers/signature-doctor');
    await page.getByRole('textbox', { name: 'Headers' }).fill('t=1,v1=00');
    await page.getByRole('textbox', { name: 'Body' }).fill('{}');
    await click('Diagnose');
    await page.getByRole('status').getByRole('heading').waitFor();
  },
  'the menu of an endpoint': async () => {
    await openEndpoint(good);
    await click('More actions');
    await page.getByRole('menuitem').first().waitFor();
  },
  'the user’s menu': async () => {
    await page.keyboard.press('Escape');
    await page.locator('details.user > summary').click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  },
  'the command palette': async () => {
    await page.keyboard.press('Control+k');
    await dialog.getByRole('combobox').fill('e');
    await dialog.getByRole('option').first().waitFor();
  },
  'the command palette without a result': async () => {
    await dialog.getByRole('combobox').fill('nothing like that');
    await dialog.getByText('No matches.').waitFor();
  },
  'the notice that a younger session is needed': async () => {
    await sql(
      `UPDATE portal_sessions SET created_at = created_at - interval '20 minutes' WHERE partner_id = $1`,
      [partner.id],
    );
    await portal.open('/developers/api-keys?mode=live');
    await click('Revoke');
    await click('Revoke key', dialog);
    await dialog.getByRole('heading', { name: 'Sign in again to continue' }).waitFor();
  },
  'the end of a session': async () => {
    await service.admin.post(`/internal/v1/partners/${partner.id}/portal-sessions/revoke-all`);
    await page.goto(service.process.portal!.url);
    await page.getByRole('heading', { level: 1 }).waitFor();
  },
};

interface Ids {
  readonly endpoint: string;
  readonly delivery: string;
  readonly request: string;
  readonly order: string;
  readonly esim: string;
  readonly topup: string;
}

/** All screens and their variants. */
const SCREENS: Record<string, (ids: Ids) => string> = {
  Home: () => '/',
  'Home of Live, by hour': () => '/?mode=live&window=24h',
  Catalog: () => '/catalog',
  'a destination': () => '/catalog?to=JP',
  'a package': () => '/catalog/pkg_fr_1gb_7d',
  'API Keys': () => '/developers/api-keys',
  Webhooks: () => '/developers/webhooks',
  'an endpoint': ({ endpoint }) => `/developers/webhooks/${endpoint}`,
  'a delivery': ({ endpoint, delivery }) => `/developers/webhooks/${endpoint}?delivery=${delivery}`,
  'filtered deliveries': ({ endpoint }) => `/developers/webhooks/${endpoint}?status=failed`,
  Events: () => '/developers/events',
  Requests: () => '/developers/requests',
  'a request': ({ request }) => `/developers/requests/${request}`,
  'no request': () => '/developers/requests/req_unknown',
  'Signature Doctor': () => '/developers/signature-doctor',
  Orders: () => '/orders',
  'an order': ({ order }) => `/orders/${order}`,
  eSIMs: () => '/esims',
  'an eSIM': ({ esim }) => `/esims/${esim}`,
  'Top-ups': () => '/top-ups',
  'a top-up': ({ topup }) => `/top-ups/${topup}`,
  Refunds: () => '/refunds',
  'Balance of Sandbox': () => '/balance',
  'Balance of Live': () => '/balance?mode=live',
  'an empty list': () => '/orders?mode=live',
  'Page not found': () => '/nowhere',
};

interface Listed {
  readonly id: string;
  readonly request_id: string;
  readonly last_attempt: unknown;
}

async function firstOf(path: string): Promise<Listed> {
  return eventually(`something in ${path}`, async () => {
    const answer = await service.admin.get(`/internal/v1/partners/${visitor.id}/${path}`);
    return (answer.body.data as Listed[])[0];
  });
}

async function topUp({ sandbox }: TestPartner, esimId: string): Promise<string> {
  const packages = await sandbox.get(`/v1/esims/${esimId}/topup-packages`);
  const [first] = packages.body.data as { id: string }[];
  const placed = await sandbox.post('/v1/topups', { esim_id: esimId, package_id: first!.id });
  return placed.body.data.id as string;
}

describe.skipIf(missing !== null)('the portal', { timeout: BROWSER_TEST_MS }, () => {
  const accessible =
    'passes axe in light and dark, obeys its content policy, and fits at four times the zoom: %s';

  beforeAll(async () => {
    service = await startTestService({ env: ENV });
    receivers = [await startReceiver(), await startReceiver()];
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    for (const receiver of receivers) await receiver.close();
    await service.stop();
  });

  describe('every screen', () => {
    let screens: PortalPage;
    let known: Ids;
    beforeAll(async () => {
      visitor = await service.createPartner('Accessible Travel');
      const endpoint = await registerEndpoint(service, visitor.id, { url: receivers[0]!.url });
      // A name without a blank must not widen a page.
      const long = 'n'.repeat(60);
      await service.admin.post(`/internal/v1/partners/${visitor.id}/api-keys`, {
        mode: 'sandbox',
        name: long,
      });
      await visitor.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', reference: long });
      const packages = await visitor.sandbox.get('/v1/catalog?kind=base&limit=1');
      const esim = await issueEsim(visitor.sandbox, (packages.body.data as { id: string }[])[0]!.id);
      known = {
        endpoint: endpoint.id,
        delivery: (await firstOf(`webhook-endpoints/${endpoint.id}/deliveries`)).id,
        request: (await firstOf('requests')).request_id,
        order: (await firstOf('orders')).id,
        esim,
        topup: await topUp(visitor, esim),
      };
      screens = await openPortalPage(browser, service, visitor.id);
    });

    it.each(Object.keys(SCREENS))(accessible, async (name) => {
      await screens.open(SCREENS[name]!(known));
      await expectAccessible(screens);
    });
  });

  describe('every dialog and state', () => {
    beforeAll(async () => {
      partner = await service.createPartner('Accessible Dialogs');
      const [takes, refuses] = receivers;
      refuses!.answer = (_nth, _webhook, response) => void response.writeHead(503).end('down for repair');
      [blocked, disabled] = [await endpointAt(refuses!, 5), await endpointAt(refuses!, 5)];
      await giveUp(blocked, 1);
      await giveUp(disabled, 5);
      [retried, good] = [await endpointAt(refuses!, 5), await endpointAt(takes!, 1)];
      const terms = { return_url: 'https://office.example.com/portal' };
      portal = await openPortalPage(browser, service, partner.id, { terms });
      page = portal.page;
      dialog = page.getByRole('dialog');
    });

    it.each(Object.keys(LOOKS))(accessible, async (name) => {
      await LOOKS[name]!();
      await expectAccessible(portal);
    });
  });
});
