import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { recordEvent, registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage } from './browser.js';

const DELIVERIES = 10_000;
const PAGE = 50;

let service: TestService;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;
let browser: Browser;
let receiver: TestReceiver;

const msSince = (at: number): number => Math.round(performance.now() - at);

async function fillLog(): Promise<void> {
  await service.database.pool.query(
    `WITH made AS (
       INSERT INTO events (id, partner_id, mode, type, body, created_at)
       SELECT 'evt_' || substr($2, 5, 16) || lpad(n::text, 10, '0'), $2, 'sandbox', 'esim.activated', '{}',
              now() - interval '1 minute' - ($1::int - n) * interval '1 millisecond'
       FROM generate_series(1, $1::int) AS n
       RETURNING id, type, created_at
     )
     INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, attempt_count,
                                     counted_attempts, created_at, delivered_at, ended_at)
     SELECT 'dlv' || substr(id, 4), $3, $2, 'sandbox', id, type, 'event', 'delivered', 1, 1, created_at,
            now() - interval '30 seconds', now() - interval '30 seconds' FROM made`,
    [DELIVERIES, partner.id, endpoint.id],
  );
  await service.database.pool.query('ANALYZE events, webhook_deliveries');
}

describe.skipIf(missing !== null)('a log of ten thousand deliveries', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    partner = await service.createPartner('Busy Travel');
    receiver = await startReceiver();
    endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await fillLog();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it('shows one page of it, keeps the place when one scrolls, and a new delivery comes without a reload', async () => {
    const { page, open, close } = await openPortalPage(browser, service, partner.id);
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/deliveries')) asked.push(request.url());
    });
    const openedAt = performance.now();
    await open(`/developers/webhooks/${endpoint.id}`);
    const log = page.getByRole('table', { name: 'Delivery log' });
    const buttons = log.getByRole('button', { name: /^dlv_/ });
    await buttons.first().waitFor();
    console.log(`first row ${msSince(openedAt)} ms after its page was asked for`);
    // One question for the first row, and none for each of the rows.
    expect(asked.filter((url) => !url.includes('cursor='))).toHaveLength(asked.length);
    expect(await buttons.count()).toBeLessThanOrEqual(PAGE);

    // The next pages follow; what one reads stays where it is while new rows come above.
    await buttons.last().scrollIntoViewIfNeeded();
    await eventually('the second page', async () => (await buttons.count()) > PAGE);
    const read = buttons.nth(PAGE);
    await read.scrollIntoViewIfNeeded();
    const id = await read.innerText();
    const placed = page.getByRole('button', { name: id });
    const newest = await buttons.first().innerText();
    const before = (await placed.boundingBox())!.y;
    await recordEvent(service, { partnerId: partner.id });
    await eventually('the new delivery is sent', () => receiver.received.length === 1);
    const receivedAt = performance.now();
    await eventually('its row', async () => (await buttons.first().innerText()) !== newest);
    console.log(`its row ${msSince(receivedAt)} ms after it was received`);
    expect(Math.abs((await placed.boundingBox())!.y - before)).toBeLessThan(20);
    await close();
  });
});
