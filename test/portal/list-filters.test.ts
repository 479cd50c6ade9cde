import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../src/common/errors/index.js';
import {
  eventually,
  loggedCall,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { recordEvent, registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';
import { PATIENCE_MS } from '../harness/eventually.js';

/** More than the automatic searches cover: five of 2,000 calls each. */
const CALLS = 13_000;
const HELD = 70;

const PATIENCE = { timeout: PATIENCE_MS };

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let portal: PortalPage;
let page: Page;
let endpoint: RegisteredEndpoint;

/** Inserts thirteen thousand GET calls, and one earlier POST. */
async function fillCallLog(): Promise<void> {
  await service.database.pool.query(
    `INSERT INTO api_calls (request_id, partner_id, mode, method, route, path, status, latency_ms, remote_address, created_at)
     SELECT 'req_' || lpad(n::text, 26, '0'), $2, 'sandbox', CASE n WHEN 1 THEN 'POST' ELSE 'GET' END, '/v1/me', '/v1/me',
            200, 5, '203.0.113.5', now() - ($1::int - n) * interval '1 millisecond'
     FROM generate_series(1, $1::int) AS n`,
    [CALLS, partner.id],
  );
}

/** Creates held deliveries of a disabled endpoint, more than the first page shows. */
async function holdDeliveries(): Promise<void> {
  await service.admin.post(`${endpoint.path}/disable`);
  for (let sent = 0; sent < HELD; sent += 1) await recordEvent(service, { partnerId: partner.id });
  await eventually('all are held', async () => {
    const { held_count: held } = (await service.admin.get(endpoint.path)).body.data as { held_count: number };
    return held === HELD;
  });
}

describe.skipIf(missing !== null)('a list filter', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    partner = await service.createPartner('Filtering Travel');
    endpoint = await registerEndpoint(service, partner.id, { url: 'https://partner.example/hook' });
    await fillCallLog();
    await holdDeliveries();
    browser = await launchChromium();
    portal = await openPortalPage(browser, service, partner.id);
    page = portal.page;
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  it('does not report an empty result while the search is incomplete', async () => {
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/portal/v1/requests?')) asked.push(request.url());
    });
    await portal.open('/developers/requests?method=POST');
    await page.getByText('No matches so far. There is more to search.').waitFor();
    expect(await page.getByText('No matches', { exact: true }).count()).toBe(0);
    // The automatic search stops here.
    expect(asked).toHaveLength(5);
    await page.getByRole('button', { name: 'Search further back' }).click();
    await page
      .getByRole('table', { name: 'Requests' })
      .getByText('req_00000000000000000000000001')
      .first()
      .waitFor();
    // The end of the search is reported.
    await portal.open('/developers/requests?method=DELETE');
    await page.getByRole('button', { name: 'Search further back' }).click();
    await page.getByRole('heading', { name: 'No matches', exact: true }).waitFor();
  });

  it('does not restore typed text after it was removed from the address', async () => {
    const field = page.getByLabel('Your reference');
    const isFree = async (): Promise<void> => {
      await expect.poll(() => field.inputValue(), PATIENCE).toBe('');
      // Longer than the debounce of typed text.
      const later = page.waitForURL('**reference=**', { timeout: 1_500 }).then(
        () => 'it has come back',
        () => 'gone',
      );
      expect(await later).toBe('gone');
    };
    await portal.open('/orders?mode=sandbox');
    await field.fill('invoice-7');
    await page.waitForURL('**/orders?**reference=invoice-7**');
    await page.getByRole('navigation', { name: 'Business' }).getByRole('link', { name: 'Orders' }).click();
    await isFree();
    await field.fill('invoice-8');
    await page.waitForURL('**reference=invoice-8**');
    await page.getByRole('radio', { name: 'Live' }).click();
    await page.getByText('charged to your balance').waitFor();
    await isFree();
    await page.goBack();
    await expect.poll(() => field.inputValue(), PATIENCE).toBe('invoice-8');
  });

  it('updates the address once the typed text is a valid value, and not earlier', async () => {
    const refused: string[] = [];
    page.on('response', (response) => {
      if (response.status() === 400) refused.push(response.url());
    });
    const log = page.getByRole('table', { name: 'Delivery log' });
    await portal.open(`/developers/webhooks/${endpoint.id}`);
    await log.waitFor();
    await page.getByRole('button', { name: 'Filters' }).click();
    await page.getByLabel('Last status code').pressSequentially('503', { delay: 500 });
    await page.waitForURL('**status_code=503**');
    await page.getByText('No matching deliveries').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await log.waitFor();
    expect(await page.getByLabel('Last status code').inputValue()).toBe('');
    await page.getByLabel('Event id').pressSequentially('evt_1', { delay: 500 });
    await page.waitForURL('**event_id=evt_1**');
    await portal.open('/developers/requests');
    await page.getByLabel('Status').pressSequentially('402', { delay: 500 });
    await page.waitForURL('**status=402**');
    await portal.open('/esims');
    await page.getByLabel('ICCID').pressSequentially('8910', { delay: 500 });
    await page.getByLabel('ICCID').pressSequentially('00000000000001');
    await page.waitForURL('**iccid=891000000000000001**');
    expect(refused).toEqual([]);
  });

  it.each(['created_after=x', 'status_code=5', 'status=lost', 'event_id=8'])(
    'reports that %s in the address is ignored',
    async (filter) => {
      await portal.open(`/developers/webhooks/${endpoint.id}?${filter}`);
      await page.getByRole('table', { name: 'Delivery log' }).waitFor();
      await page
        .getByText(`is not a valid value for ${filter.split('=')[0]!.replaceAll('_', ' ')}`)
        .waitFor();
      expect(portal.complaints).toEqual([]);
    },
  );

  it('offers every error code that a program can receive, and finds its calls', async () => {
    // Log the call first, because a page opened earlier lists only the codes that existed then.
    await loggedCall(service.admin, await partner.sandbox.get('/v1/orders/ord_none'));
    await portal.open('/developers/requests');
    const field = page.getByLabel('Error code');
    const offered = await field
      .locator('option')
      .evaluateAll((options) => options.map((option) => (option as { value?: string }).value));
    const ofPortals = ['step_up_required', 'session_changed'];
    expect(offered.toSorted()).toEqual(
      ['', ...ERROR_CODES.filter((code) => !ofPortals.includes(code))].toSorted(),
    );
    await field.selectOption('not_found');
    await page.getByRole('table', { name: 'Requests' }).getByText('not_found', { exact: true }).waitFor();
    expect(new URL(page.url()).searchParams.get('error_code')).toBe('not_found');
  });

  it('hides deliveries that the switch has discarded, if it selects held ones', async () => {
    await portal.open(`/developers/webhooks/${endpoint.id}?status=held`);
    const rows = page.getByRole('table', { name: 'Delivery log' }).getByRole('link', { name: /dlv_/ });
    await rows.first().waitFor();
    await rows.last().scrollIntoViewIfNeeded();
    await expect.poll(() => rows.count(), PATIENCE).toBe(HELD);
    await page.getByRole('button', { name: 'Choose what to send' }).click();
    await page.getByRole('dialog').getByText('Discard them').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click();
    await page.getByText('No matching deliveries').waitFor();
    expect(portal.complaints).toEqual([]);
  });
});
