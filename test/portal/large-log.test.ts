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
import { recordEvent, registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage } from './browser.js';

const DELIVERIES = 10_000;
const PAGE = 50;

let service: TestService;
let partner: TestPartner;
let long: RegisteredEndpoint;
let browser: Browser;
let receiver: TestReceiver;

const rowsOf = (page: Page): Locator =>
  page.getByRole('table', { name: 'Delivery log' }).getByRole('link', { name: /dlv_/ });

/** Inserts deliveries a millisecond apart, each with its attempt. Every tenth failed. */
async function fillLog(): Promise<void> {
  await service.database.pool.query(
    `WITH made AS (
       INSERT INTO events (id, partner_id, mode, type, body, created_at)
       SELECT 'evt_' || substr($2, 5, 15) || 'A' || lpad(n::text, 10, '0'), $2, 'sandbox', 'esim.activated', '{}',
              now() - interval '1 minute' - ($1::int - n) * interval '1 millisecond'
       FROM generate_series(1, $1::int) AS n
       RETURNING id, type, created_at, right(id, 1) <> '7' AS taken
     ), delivered AS (
       INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, attempt_count,
                                       counted_attempts, created_at, delivered_at, ended_at, last_outcome, last_status_code,
                                       last_error, last_latency_ms, last_started_at)
       SELECT 'dlv' || substr(id, 4), $3, $2, 'sandbox', id, type, 'event', CASE WHEN taken THEN 'delivered' ELSE 'failed' END, 1,
              1, created_at, CASE WHEN taken THEN created_at END, created_at, CASE WHEN taken THEN 'delivered' ELSE 'failed' END,
              CASE WHEN taken THEN 200 ELSE 503 END, CASE WHEN NOT taken THEN 'http_status' END, 40, created_at
       FROM made
       RETURNING id, last_outcome, last_status_code, last_error, last_started_at
     )
     INSERT INTO webhook_attempts (delivery_id, endpoint_id, partner_id, number, started_at, outcome, status_code, error,
                                   latency_ms, phases, request_headers, response_headers, response_body)
     SELECT id, $3, $2, 1, last_started_at, last_outcome, last_status_code, last_error, 40,
            '{"dns_ms":1,"connect_ms":2,"tls_ms":5,"first_byte_ms":38,"total_ms":40}', '{"content-type":"application/json"}',
            '{"content-type":"text/plain"}', repeat('an answer ', 20)
     FROM delivered`,
    [DELIVERIES, partner.id, long.id],
  );
  await service.database.pool.query('ANALYZE events, webhook_deliveries, webhook_attempts');
}

describe.skipIf(missing !== null)('a log of ten thousand deliveries', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    partner = await service.createPartner('Busy Travel');
    receiver = await startReceiver();
    long = await registerEndpoint(service, partner.id, { url: receiver.url });
    await fillLog();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it('loads one page, and shows no more rows', async () => {
    const { page, open, close } = await openPortalPage(browser, service, partner.id);
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/deliveries')) asked.push(request.url());
    });
    await open(`/developers/webhooks/${long.id}`);
    const rows = rowsOf(page);
    await rows.first().waitFor();
    expect(asked.filter((url) => url.includes('cursor='))).toEqual([]);
    expect(new Set(asked).size).toBe(1);
    expect(await rows.count()).toBeLessThanOrEqual(PAGE);
    await close();
  });

  it('keeps the scroll position while a new attempt appears above', async () => {
    const { page, open, close } = await openPortalPage(browser, service, partner.id);
    await open(`/developers/webhooks/${long.id}`);
    const rows = rowsOf(page);
    await rows.first().waitFor();
    await rows.last().scrollIntoViewIfNeeded();
    await eventually('the second page', async () => (await rows.count()) > PAGE);
    const read = page.getByRole('link', { name: await rows.nth(PAGE).innerText() });
    await read.scrollIntoViewIfNeeded();
    const newest = await rows.first().innerText();
    const before = (await read.boundingBox())!.y;
    await recordEvent(service, { partnerId: partner.id });
    const first = page
      .getByRole('row')
      .filter({ has: page.getByRole('cell') })
      .first();
    await first.filter({ hasNotText: newest }).filter({ hasText: '200' }).waitFor({ state: 'attached' });
    expect(Math.abs((await read.boundingBox())!.y - before)).toBeLessThan(20);
    await close();
  });
});
