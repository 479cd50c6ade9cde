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
import { recordEvent } from '../webhooks/support.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage, type PortalPage } from './browser.js';

/**
 * Retries are fast up to the last attempt. That attempt and the end of a block happen only when the test advances time.
 */
const LIFE = {
  WEBHOOK_RETRY_DELAYS_MS: '100,100,100,100,3600000',
  WEBHOOK_BLOCK_MS: '3600000',
  WEBHOOK_TIMEOUT_MS: '30000',
  LEASE_MS: '30000',
};
const IN_AN_HOUR = /in (5[5-9]|60) min|in 1 h/;

interface EndpointFigures {
  readonly status: string;
  readonly pending_count: number;
}

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let receiver: TestReceiver;
let portal: PortalPage;

async function endpointFigures(): Promise<EndpointFigures> {
  const list = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
  return ((await service.admin.get(list)).body.data as EndpointFigures[])[0]!;
}

/** Makes pending attempts due and ends blocks. */
async function letTimePass(): Promise<void> {
  const { pool } = service.database;
  await pool.query('UPDATE webhook_endpoints SET blocked_until = now() WHERE blocked_until > now()');
  await pool.query(
    'UPDATE webhook_deliveries SET next_attempt_at = now() WHERE next_attempt_at > now() AND started_at IS NULL',
  );
}

/** Lets deliveries fail one after another. Each blocks the endpoint, until it is disabled. */
async function loseUntilDisabled(): Promise<void> {
  for (let lost = 0; lost < 10; lost += 1) {
    await recordEvent(service, { partnerId: partner.id });
    const status = await eventually('the delivery is given up', async () => {
      await letTimePass();
      const { status: seen, pending_count: pending } = await endpointFigures();
      // The list reads pending deliveries after the endpoints. If one is disabled in between, it shows "blocked"
      // without any.
      return seen === 'disabled' || pending === 0 ? (await endpointFigures()).status : null;
    });
    if (status === 'disabled') return;
  }
  throw new Error('the endpoint is not disabled after ten lost deliveries');
}

describe.skipIf(missing !== null)(
  'the life cycle of an endpoint in the portal',
  { timeout: BROWSER_TEST_MS },
  () => {
    beforeAll(async () => {
      service = await startTestService({ env: LIFE });
      partner = await service.createPartner('Lifetime Travel');
      browser = await launchChromium();
      receiver = await startReceiver();
      portal = await openPortalPage(browser, service, partner.id);
    });
    afterAll(async () => {
      await browser.close();
      await receiver.close();
      await service.stop();
    });

    it('covers creation, delivery, failure, retries, disabling with a reason, repair, enabling, and held events', async () => {
      const { page, open } = portal;
      await open('/developers/webhooks');
      await page.getByRole('button', { name: 'New endpoint' }).first().click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: 'URL' }).fill(receiver.url);
      await dialog.getByRole('button', { name: 'Create endpoint' }).click();
      await dialog.getByRole('button', { name: 'Done' }).click();

      await page.getByRole('link', { name: receiver.url }).click();
      await page.getByRole('heading', { name: 'Delivery log' }).waitFor();
      const log = page.getByRole('table', { name: 'Delivery log' });

      // The endpoint receives an event, and the row appears without a reload.
      await recordEvent(service, { partnerId: partner.id });
      const rows = log.getByRole('row').filter({ has: page.getByRole('cell') });
      await rows.filter({ hasText: '200' }).first().waitFor();

      // The receiver fails, and the row shows the next retry and its time.
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(503).end('down for repair');
      await recordEvent(service, { partnerId: partner.id });
      const retried = rows.filter({ hasText: 'Attempt 6 of 6' }).filter({ hasText: '503' });
      await retried.getByText('Retrying', { exact: true }).waitFor();
      expect(await retried.innerText()).toMatch(IN_AN_HOUR);
      await retried.getByRole('link', { name: /dlv_/ }).click();
      await dialog.getByText('Retrying', { exact: true }).waitFor();
      const countdown = dialog.getByText('Next attempt').locator('time');
      const first = await countdown.innerText();
      expect(first).toMatch(IN_AN_HOUR);
      await eventually('it is counted down', async () => (await countdown.innerText()) !== first);
      const explanation = dialog.getByRole('region', { name: 'Explanation' });
      await explanation.getByText('Your server returned an error (5xx).').waitFor();
      await explanation.getByText('Attempt 6 of at most 6 starts automatically.').waitFor();

      // The phases of an attempt.
      const times = await dialog.getByRole('list', { name: 'Phase times' }).innerText();
      expect(times).toMatch(/First byte\s+\d+ ms/);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });

      // After its last attempt the delivery fails and the endpoint is blocked. New events wait.
      await letTimePass();
      await page.getByText('Blocked', { exact: true }).waitFor();
      await recordEvent(service, { partnerId: partner.id });
      await page.getByText(/A delivery failed six times. Sending resumes in \d+/).waitFor();
      await page.getByText(/Block 1 of 5: the fifth disables the endpoint. Last error: .*503/).waitFor();
      await page.getByText('1 pending').waitFor();
      const blocked = page.getByRole('region', { name: 'Explanation' });
      await blocked
        .getByText('The block ends automatically. We then send pending deliveries, slowly at first.')
        .waitFor();
      expect(await blocked.innerText()).toMatch(IN_AN_HOUR);
      const waiting = rows.filter({ hasText: 'Not sent yet' });
      await waiting.getByText('Pending', { exact: true }).waitFor();
      expect(await page.getByRole('switch', { name: receiver.url }).getAttribute('aria-checked')).toBe(
        'true',
      );

      // It is blocked again and again until it is disabled.
      await loseUntilDisabled();
      await page.getByText('Disabled', { exact: true }).waitFor();
      await page.getByText(/after 5 blocks in a row/).waitFor();
      await page.getByText(/Last error: .*503/).waitFor();
      const toggle = page.getByRole('switch', { name: receiver.url });
      expect(await toggle.getAttribute('aria-checked')).toBe('false');

      // The failed delivery shows the reason.
      await rows.filter({ hasText: 'Failed' }).first().getByRole('link', { name: /dlv_/ }).click();
      await dialog.getByText('down for repair').first().waitFor();
      await explanation.getByText('Your server returned an error (5xx).').waitFor();
      await explanation.getByText('You', { exact: true }).waitFor();
      expect(await dialog.getByRole('button', { name: /^Attempt \d$/ }).count()).toBe(6);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });

      // A filter is part of the address, so a reload or a shared link shows the same.
      const status = page.getByRole('combobox', { name: 'Delivery status' });
      const states = async (): Promise<Set<string>> =>
        new Set(await log.locator('td.at-state .badge').allInnerTexts());
      const onlyFailed = async (): Promise<boolean> => [...(await states())].join() === 'Failed';
      await eventually(
        'the others have failed',
        async () => [...(await states())].sort().join() === 'Delivered,Failed',
      );
      await page.getByRole('button', { name: 'Filters' }).click();
      await status.selectOption('failed');
      await eventually('only failed ones are listed', onlyFailed);
      expect(new URL(page.url()).searchParams.get('status')).toBe('failed');
      await page.reload();
      await rows.first().waitFor();
      expect(await status.inputValue()).toBe('failed');
      await eventually('still only failed ones are listed', onlyFailed);
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await log.getByText('Delivered', { exact: true }).waitFor();

      // New events are held until the endpoint is repaired and enabled.
      await recordEvent(service, { partnerId: partner.id });
      await page.getByText(/\d+ events? held/).waitFor();
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
      const before = receiver.received.length;
      await toggle.click();
      await page.getByText('Enabled', { exact: true }).waitFor();
      await eventually('what was held is sent', () => receiver.received.length > before);
      await rows.first().getByText('Delivered').waitFor();

      // Resend creates a new delivery.
      await rows.first().getByRole('link', { name: /dlv_/ }).click();
      await dialog.getByRole('button', { name: 'Resend' }).click();
      await page.getByText('Resent as').first().waitFor();
      await page.keyboard.press('Escape');
      await rows.filter({ hasText: 'Resend' }).filter({ hasText: '200' }).first().waitFor();

      // Replay counts first and then sends.
      await page.getByRole('button', { name: 'Replay', exact: true }).click();
      await dialog.getByRole('button', { name: 'Count first' }).click();
      await dialog.getByText(/deliver(y|ies) will be sent/).waitFor();
      await dialog.getByRole('button', { name: 'Start replay' }).click();
      await page.getByRole('region', { name: 'Replay progress' }).getByText('Replay finished').waitFor();
      await rows.filter({ hasText: 'replay' }).filter({ hasText: '200' }).first().waitFor();
      expect(portal.complaints).toEqual([]);
    });
  },
);
