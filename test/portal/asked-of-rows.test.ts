import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { recordEvent, registerEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

/** As many as a partner may have in a mode. */
const ENDPOINTS = 20;
/** So often the list is asked for again while the questions of its rows are counted. */
const POLLS = 4;

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let receiver: TestReceiver;
let portal: PortalPage;
let page: Page;

describe.skipIf(missing !== null)('a list of many endpoints', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService({
      env: { WEBHOOK_RETRY_DELAYS_MS: '50,50', WEBHOOK_BLOCK_MS: '100', WEBHOOK_BLOCKS_BEFORE_DISABLE: '1' },
    });
    partner = await service.createPartner('Many Travel');
    receiver = await startReceiver();
    receiver.answer = (_nth, _hook, response) => void response.writeHead(503).end();
    for (let made = 1; made < ENDPOINTS; made += 1)
      await registerEndpoint(service, partner.id, {
        url: `https://partner.example/${made}`,
        event_types: ['esim.expired'],
      });
    const failing = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvent(service, { partnerId: partner.id });
    await eventually(
      'one is disabled',
      async () => (await service.admin.get(failing.path)).body.data.status === 'disabled',
    );
    browser = await launchChromium();
    portal = await openPortalPage(browser, service, partner.id);
    page = portal.page;
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it('asks for the figures of the rows that one sees, and once for why one has failed', async () => {
    const asked: string[] = [];
    page.on(
      'request',
      (request) => void asked.push(new URL(request.url()).pathname + new URL(request.url()).search),
    );
    const stats = () => asked.filter((path) => path.includes('/stats'));
    await portal.open('/developers/webhooks');
    await page.getByText('last error: answered with status 503').waitFor();
    await eventually(
      'the list is asked for again',
      () => asked.filter((path) => path.endsWith('webhook-endpoints?mode=sandbox')).length > POLLS,
    );
    expect(stats().length).toBeGreaterThan(0);
    expect(new Set(stats()).size).toBeLessThan(ENDPOINTS);
    expect(asked.filter((path) => path.includes('status=failed'))).toHaveLength(1);

    const seen = new Set(stats()).size;
    await page.getByRole('row').last().scrollIntoViewIfNeeded();
    await eventually('those that come into sight', () => new Set(stats()).size > seen);
    expect(portal.complaints).toEqual([]);
  });
});
