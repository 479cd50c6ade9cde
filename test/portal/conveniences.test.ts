import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEY_SCOPES } from '../../src/common/scopes.js';
import { freePort } from '../../chaos/free-port.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { deliveryThat, recordEvent, registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

const ZONE = 'Asia/Tokyo';

let service: TestService;
let partner: TestPartner;
let liveKey: string;
let browser: Browser;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
let apiUrl: string;
let portal: PortalPage;
let page: Page;
let dialog: Locator;

/** Runs a line in a shell, asynchronously, because the service that it calls runs in this process. */
async function run(line: string): Promise<{ status: number; body: unknown }> {
  const { stdout } = await promisify(execFile)('bash', ['-c', `${line} -s -m 30 -w '\n%{http_code}'`]);
  const lines = stdout.split('\n');
  return { status: Number(lines.at(-1)), body: JSON.parse(lines.slice(0, -1).join('\n')) };
}

/** Runs the command shown on an empty screen as if a partner had pasted it. */
async function runShown(
  title: string,
  key: string,
  on: Page = page,
): Promise<{ command: string; status: number; body: unknown }> {
  const empty = on.locator('.empty').filter({ has: on.getByRole('heading', { name: title }) });
  const command = await empty.locator('pre').innerText();
  expect(command).toContain(`${apiUrl}/v1/`);
  expect(command).toContain('$ESIM_API_KEY');
  await empty.getByRole('button', { name: 'Copy command' }).waitFor();
  return { command, ...(await run(`export ESIM_API_KEY=${key}\n${command}`)) };
}

/** The time as shown in `ZONE`. Node.js and Chromium may use different spaces. */
function inZone(at: string): string {
  const format = new Intl.DateTimeFormat('en-US', {
    dateStyle: 'medium',
    timeStyle: 'medium',
    hourCycle: 'h23',
    timeZone: ZONE,
  });
  return format.format(new Date(at)).replaceAll(/\s/g, ' ');
}

const inUtc = (at: string): string => `${at.replace('T', ' ').replace('Z', '')} UTC`;

async function expectInZone(time: Locator, at: string): Promise<void> {
  expect((await time.innerText()).replaceAll(/\s/g, ' ')).toBe(inZone(at));
  expect(await time.getAttribute('title')).toBe(inUtc(at));
}

describe.skipIf(missing !== null)('a portal user', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    const port = await freePort();
    apiUrl = `http://127.0.0.1:${port}`;
    service = await startTestService({
      env: { PORT: String(port), API_URL: apiUrl, WEBHOOK_RETRY_DELAYS_MS: '3600000' },
    });
    partner = await service.createPartner('Convenient Travel');
    liveKey = await service.createKey(partner.id, 'live');
    receiver = await startReceiver();
    browser = await launchChromium();
    portal = await openPortalPage(browser, service, partner.id, { timezoneId: ZONE });
    page = portal.page;
    dialog = page.getByRole('dialog');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it('sees the next step on every empty screen, with a command that works when it is pasted', async () => {
    const { open } = portal;
    const noEsims = (await partner.sandbox.get('/v1/esims')).body.data as unknown[];
    expect(noEsims).toEqual([]);
    await open('/top-ups');
    expect((await runShown('No top-ups yet', partner.sandboxKey)).command).toContain('/v1/orders');
    await eventually('the eSIM is issued', async () => {
      const { data } = (await partner.sandbox.get('/v1/esims')).body as { data: unknown[] };
      return data.length > 0;
    });
    const esimId = (await partner.sandbox.get('/v1/esims')).body.data[0].id as string;
    await open('/top-ups');
    await page.locator('.empty pre').filter({ hasText: esimId }).waitFor();
    const topups = await runShown('No top-ups yet', partner.sandboxKey);
    expect(topups).toMatchObject({
      status: 200,
      body: { data: expect.arrayContaining([expect.anything()]) },
    });

    await open('/balance');
    expect((await runShown('Sandbox is free', partner.sandboxKey)).status).toBe(202);
    await open('/balance?mode=live');
    expect((await runShown('No balance yet', liveKey)).status).toBe(200);
    expect((await runShown('No transactions yet', liveKey)).status).toBe(200);
    await open('/esims?mode=live');
    expect((await runShown('No eSIMs yet', liveKey)).command).toContain('/v1/orders');

    const other = await service.createPartner('Empty Travel');
    const { id } = await registerEndpoint(service, other.id, { url: receiver.url });
    const empty = await openPortalPage(browser, service, other.id);
    await empty.open(`/developers/webhooks/${id}`);
    expect((await runShown('No deliveries yet', other.sandboxKey, empty.page)).status).toBe(202);
    await empty.close();
  });

  it('copies the id of an order, an ICCID and the id of a key with a button', async () => {
    const copied = async (opens: string, what: string): Promise<unknown> => {
      await portal.open(opens);
      await page
        .getByRole('button', { name: `Copy ${what}` })
        .first()
        .click();
      await page.getByText('Copied', { exact: true }).waitFor();
      return page.evaluate('navigator.clipboard.readText()');
    };
    const [esim] = (await partner.sandbox.get('/v1/esims')).body.data as {
      id: string;
      iccid: string;
      order_id: string;
    }[];
    const keys = await service.admin.get(`/internal/v1/partners/${partner.id}/api-keys?mode=sandbox`);
    expect(await copied(`/orders/${esim!.order_id}`, 'order id')).toBe(esim!.order_id);
    expect(await copied(`/esims/${esim!.id}`, 'ICCID')).toBe(esim!.iccid);
    expect(await copied('/developers/api-keys', 'key id')).toBe(keys.body.data[0].id);
  });

  it('creates a key with restricted access and a daily spend limit, and lists both', async () => {
    await portal.open('/developers/api-keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await dialog.getByRole('textbox', { name: 'Name' }).fill('fulfilling');
    await dialog.getByRole('radio', { name: 'Fulfillment' }).click();
    const limit = dialog.getByRole('textbox', { name: 'Daily spend limit' });
    await limit.fill('250.5.0');
    await dialog.getByText('Enter an amount in USD, such as 250.00.').waitFor();
    expect(await dialog.getByRole('button', { name: 'Create key' }).isDisabled()).toBe(true);
    await limit.fill('250.1');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('button', { name: 'Done' }).click();
    const row = page.getByRole('row').filter({ hasText: 'fulfilling' });
    await row.getByText('Fulfillment').waitFor();
    await row.getByText('up to $250.10 a day').waitFor();
    const keys = await service.admin.get(`/internal/v1/partners/${partner.id}/api-keys?mode=sandbox`);
    expect(keys.body.data[0]).toMatchObject({
      spend_limit: { amount: { amount: 25_010, currency: 'USD' }, per: 'day' },
    });
    const withheld = KEY_SCOPES.filter((scope) => !keys.body.data[0].scopes.includes(scope));
    expect(withheld).toEqual(['wallet:read', 'refunds:write']);
  });

  it('sees every time in the local zone, with UTC on hover, including in explanations', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(503).end();
    await recordEvent(service, { partnerId: partner.id });
    const failed = (tried: { last_attempt: unknown; status: string }): boolean =>
      tried.status === 'pending' && tried.last_attempt !== null;
    const delivery = await deliveryThat(service, endpoint, 'failed', failed);
    await portal.open(`/developers/webhooks/${endpoint.id}?delivery=${delivery.id}`);
    const created = dialog.getByText('Created').locator('time');
    expect(await created.getAttribute('title')).toBe(inUtc(delivery.created_at));
    const evidence = dialog.getByRole('region', { name: 'Explanation' }).getByRole('listitem');
    await expectInZone(evidence.locator('time'), delivery.attempts.at(-1)!.started_at);
    expect(await evidence.innerText()).not.toMatch(/\dT\d/);
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
  });

  it('can undo the switch and Edit', async () => {
    const read = async (): Promise<Record<string, unknown>> =>
      (await service.admin.get(endpoint.path)).body.data as Record<string, unknown>;
    const undo = page.getByRole('button', { name: 'Undo' });
    await portal.open(`/developers/webhooks/${endpoint.id}`);
    await page.getByRole('switch').click();
    await page.getByText('Disabled', { exact: true }).waitFor();
    expect(await read()).toMatchObject({ status: 'disabled' });
    await undo.click();
    await page.getByText('Enabled', { exact: true }).waitFor();
    expect(await read()).toMatchObject({ status: 'enabled' });
    // An undone change offers no second undo.
    expect(await undo.count()).toBe(0);

    const before = await read();
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Edit endpoint' }).click();
    await dialog.getByRole('textbox', { name: 'URL' }).fill(`${receiver.url}/elsewhere`);
    await dialog.getByRole('textbox', { name: 'Description' }).fill('elsewhere');
    await dialog.getByRole('checkbox', { name: 'order.issued' }).check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: `${receiver.url}/elsewhere` }).waitFor();
    expect(await read()).toMatchObject({ event_types: ['order.issued'], description: 'elsewhere' });
    await undo.click();
    await page.getByText('Your change was undone.').waitFor();
    const { url, description, event_types } = before;
    expect(await read()).toMatchObject({ url, description, event_types });
    expect(portal.complaints).toEqual([]);
  });
});
