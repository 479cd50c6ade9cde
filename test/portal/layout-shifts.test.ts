import { setTimeout as sleep } from 'node:timers/promises';
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
import { recordEvent, registerEndpoint, type RegisteredEndpoint } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

/** Limit for the layout shift of all screens together. Web Vitals rates 0.1 for a single one as good. */
const BUDGET = 0.1;
/** Delays of responses, so that later ones arrive when earlier ones are shown and could move them. */
const DELAYS_MS: readonly [RegExp, number][] = [
  [/explanation/, 700],
  [/stats|replays|status=failed/, 500],
  [/session/, 0],
  [/./, 200],
];
/**
 * Longer than the pause between a response and the requests that follow it, shorter than the pause between two polls.
 */
const QUIET_MS = 400;

/** Maximum number of endpoints per partner and mode. */
const ENDPOINTS = 20;
const POLLS = 4;

interface Shift {
  readonly value: number;
  readonly moved: readonly string[];
}

/** Runs in the page and records each shift with its elements, with or without recent input. */
const RECORDER = `
  window.shifts = [];
  const name = ({ node }) => node?.nodeType === 1 ? node.tagName + '.' + node.className : String(node?.nodeName);
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) shifts.push({ value, moved: sources.map(name) });
  }).observe({ type: 'layout-shift', buffered: true });`;

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let portal: PortalPage;
let page: Page;
let good: TestReceiver;
let bad: TestReceiver;
let healthy: RegisteredEndpoint;
let disabled: RegisteredEndpoint;
let underWay = 0;
let lastAnswerAt = 0;

const isQuiet = (): boolean => underWay === 0 && performance.now() - lastAnswerAt > QUIET_MS;

/** The layout shift since the page load or the last call. */
async function shiftsOnceQuiet(): Promise<number> {
  await eventually('the answers are there', isQuiet);
  const shifts = await page.evaluate<Shift[]>(
    `new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(shifts.splice(0)))))`,
  );
  const sum = shifts.reduce((total, { value }) => total + value, 0);
  if (sum > 0.01) console.log(page.url(), sum.toFixed(3), JSON.stringify(shifts));
  return sum;
}

async function delayAnswers(): Promise<void> {
  await page.route('**/portal/v1/**', async (route) => {
    underWay += 1;
    await sleep(DELAYS_MS.find(([pattern]) => pattern.test(route.request().url()))![1]);
    // The page may have been closed.
    await route.continue().catch(() => undefined);
  });
  const ended = (): void => {
    underWay = Math.max(0, underWay - 1);
    lastAnswerAt = performance.now();
  };
  const isOurs = (url: string): boolean => url.includes('/portal/v1/');
  page.on('requestfinished', (request) => void (isOurs(request.url()) && ended()));
  page.on('requestfailed', (request) => void (isOurs(request.url()) && ended()));
}

async function fill(): Promise<void> {
  await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 3 });
  const deposit = { amount: { amount: 12_345, currency: 'USD' }, reference: 'invoice 7' };
  await service.admin.post(`/internal/v1/partners/${partner.id}/wallet/deposits`, deposit);
  for (let sent = 0; sent < 5; sent += 1) await recordEvent(service, { partnerId: partner.id });
  await eventually('one endpoint has what it is owed', () => good.received.length >= 6);
  await eventually(
    'the other is disabled',
    async () => (await service.admin.get(disabled.path)).body.data.status === 'disabled',
  );
}

describe.skipIf(missing !== null)(
  'a portal screen without layout shifts',
  { timeout: BROWSER_TEST_MS },
  () => {
    beforeAll(async () => {
      service = await startTestService({
        env: {
          WEBHOOK_RETRY_DELAYS_MS: '50,50',
          WEBHOOK_BLOCK_MS: '100',
          WEBHOOK_BLOCKS_BEFORE_DISABLE: '1',
        },
      });
      partner = await service.createPartner('Quiet Travel');
      [good, bad] = await Promise.all([startReceiver(), startReceiver()]);
      bad.answer = (_nth, _hook, response) => void response.writeHead(503).end();
      healthy = await registerEndpoint(service, partner.id, { url: good.url });
      disabled = await registerEndpoint(service, partner.id, { url: bad.url });
      await fill();
      browser = await launchChromium();
      portal = await openPortalPage(browser, service, partner.id);
      page = portal.page;
      await page.addInitScript(RECORDER);
      await delayAnswers();
    });
    afterAll(async () => {
      await browser.close();
      await Promise.all([good.close(), bad.close()]);
      await service.stop();
    });

    it('stays still while it loads', async () => {
      const sums: [string, number][] = [];
      for (const address of [
        '/developers/api-keys',
        '/developers/webhooks',
        `/developers/webhooks/${healthy.id}`,
        `/developers/webhooks/${disabled.id}`,
        '/developers/events',
        '/developers/requests',
        '/orders',
        '/esims',
        '/balance?mode=live',
      ]) {
        await portal.open(address);
        sums.push([address, await shiftsOnceQuiet()]);
      }
      const all = sums.reduce((total, [, sum]) => total + sum, 0);
      expect(all, JSON.stringify(sums)).toBeLessThan(BUDGET);
    });

    it('stays still while the rows of another filter load and replace the previous ones', async () => {
      await portal.open(`/developers/webhooks/${healthy.id}`);
      const log = page.getByRole('table', { name: 'Delivery log' });
      await log.waitFor();
      await page.getByRole('button', { name: 'Filters' }).click();
      await shiftsOnceQuiet();
      const frame = page.getByRole('group', { name: 'Delivery log, scrollable' });
      // Hold the response until the test has seen the page without it, because a busy machine may be slower than the
      // delay.
      const seen = Promise.withResolvers<void>();
      await page.route(/deliveries\?.*status=delivered/, async (route) => {
        await seen.promise;
        await route.fallback();
      });
      await page.getByLabel('Delivery status').selectOption('delivered');
      await eventually(
        'they are on their way',
        async () => (await frame.getAttribute('aria-busy')) === 'true',
      );
      expect(await log.getByRole('row').count()).toBeGreaterThan(1);
      seen.resolve();
      await eventually('the new rows', async () => (await frame.getAttribute('aria-busy')) === 'false');
      expect(await shiftsOnceQuiet()).toBeLessThan(BUDGET);
      await page.getByLabel('Delivery status').selectOption('failed');
      await page.getByText('No matching deliveries').waitFor();
      expect(await shiftsOnceQuiet()).toBeLessThan(BUDGET);
      await portal.open('/orders');
      await page.getByRole('table', { name: 'Orders' }).waitFor();
      await shiftsOnceQuiet();
      await page.getByLabel('Status').selectOption('issued');
      await page.waitForURL('**status=issued**');
      expect(await shiftsOnceQuiet()).toBeLessThan(BUDGET);
      expect(portal.complaints).toEqual([]);
    });

    it("requests the figures of a list's visible rows and the reason for a failure once", async () => {
      const many = await service.createPartner('Many Travel');
      for (let made = 1; made < ENDPOINTS; made += 1)
        await registerEndpoint(service, many.id, {
          url: `https://partner.example/${made}`,
          event_types: ['esim.expired'],
        });
      const failing = await registerEndpoint(service, many.id, { url: bad.url });
      await recordEvent(service, { partnerId: many.id });
      await eventually(
        'one is disabled',
        async () => (await service.admin.get(failing.path)).body.data.status === 'disabled',
      );
      const { page: list, open, complaints, close } = await openPortalPage(browser, service, many.id);
      const asked: string[] = [];
      list.on('request', (request) => {
        const { pathname, search } = new URL(request.url());
        asked.push(pathname + search);
      });
      const stats = () => new Set(asked.filter((path) => path.includes('/stats'))).size;
      await open('/developers/webhooks');
      await list.getByText('Last error: returned status 503').waitFor();
      await eventually(
        'the list is polled',
        () => asked.filter((path) => path.endsWith('webhook-endpoints?mode=sandbox')).length > POLLS,
      );
      const seen = stats();
      expect(seen).toBeGreaterThan(0);
      expect(seen).toBeLessThan(ENDPOINTS);
      expect(asked.filter((path) => path.includes('status=failed'))).toHaveLength(1);
      await list.getByRole('row').last().scrollIntoViewIfNeeded();
      await eventually('the figures of the rows that became visible', () => stats() > seen);
      expect(complaints).toEqual([]);
      await close();
    });
  },
);
