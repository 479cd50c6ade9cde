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

/** The life of an endpoint takes days by the table of the document. */
const SHORT_LIFE = {
  WEBHOOK_RETRY_DELAYS_MS: '100,100,100,100,100',
  WEBHOOK_BLOCK_MS: '300',
  WEBHOOK_BLOCKS_BEFORE_DISABLE: '2',
  WEBHOOK_TIMEOUT_MS: '5000',
};

interface EndpointFigures {
  readonly status: string;
  readonly pending_count: number;
}

let service: TestService;
let partner: TestPartner;
let browser: Browser;
let receiver: TestReceiver;
let portal: PortalPage;

/** One delivery after the other is given up: each blocks the endpoint, until that disables it. */
async function loseUntilDisabled(): Promise<void> {
  const list = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
  for (let lost = 0; lost < 10; lost += 1) {
    await recordEvent(service, { partnerId: partner.id });
    const status = await eventually('the delivery is given up', async () => {
      const [endpoint] = (await service.admin.get(list)).body.data as [EndpointFigures];
      return endpoint.status === 'disabled' || endpoint.pending_count === 0 ? endpoint.status : null;
    });
    if (status === 'disabled') return;
  }
  throw new Error('the endpoint is not disabled after ten lost deliveries');
}

describe.skipIf(missing !== null)(
  'the life of an endpoint, seen in the portal',
  { timeout: BROWSER_TEST_MS },
  () => {
    beforeAll(async () => {
      service = await startTestService({ env: SHORT_LIFE });
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

    it('is created, receives, breaks, is retried, disabled with its reason, repaired, switched on, and sends what was held', async () => {
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

      // It receives: the row comes without a reload.
      await recordEvent(service, { partnerId: partner.id });
      const rows = log.getByRole('row').filter({ has: page.getByRole('cell') });
      await rows.filter({ hasText: '200' }).first().waitFor();

      // The receiver breaks: retried, then blocked until it is disabled.
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(503).end('down for repair');
      await loseUntilDisabled();
      await rows.filter({ hasText: '503' }).first().waitFor();
      await page.getByText('Disabled', { exact: true }).waitFor();
      await page.getByText(/after \d blocks in a row/).waitFor();
      await page.getByText(/last error: .*503/).waitFor();
      const toggle = page.getByRole('switch', { name: receiver.url });
      expect(await toggle.getAttribute('aria-checked')).toBe('false');

      // The failed one says why.
      await rows.filter({ hasText: 'failed' }).first().getByRole('button', { name: /^dlv_/ }).click();
      await dialog.getByText('down for repair').first().waitFor();
      const explanation = dialog.getByRole('region', { name: 'Explanation' });
      await explanation.getByText('Your receiver failed.').waitFor();
      await explanation.getByText('Yours', { exact: true }).waitFor();
      expect(await dialog.getByText(/^Attempt \d$/).count()).toBe(6);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });

      // What happens meanwhile is held; it is repaired and switched on.
      await recordEvent(service, { partnerId: partner.id });
      await page.getByText(/\d+ events? held/).waitFor();
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
      const before = receiver.received.length;
      await toggle.click();
      await page.getByText('Enabled', { exact: true }).waitFor();
      await eventually('what was held is sent', () => receiver.received.length > before);
      await rows.first().getByText('delivered').waitFor();

      // Resend: a delivery of its own.
      await rows.first().getByRole('button', { name: /^dlv_/ }).click();
      await dialog.getByRole('button', { name: 'Resend' }).click();
      await page.getByText('Sent again').first().waitFor();
      await page.keyboard.press('Escape');
      await rows.filter({ hasText: 'resend' }).filter({ hasText: '200' }).first().waitFor();

      // Replay: counted first, then sent.
      await page.getByRole('button', { name: 'Replay', exact: true }).click();
      await dialog.getByRole('button', { name: 'Count first' }).click();
      await dialog.getByText(/deliver(y|ies) would be sent/).waitFor();
      await dialog.getByRole('button', { name: 'Start replay' }).click();
      await page.getByRole('region', { name: 'Replay progress' }).getByText('The replay has ended').waitFor();
      await rows.filter({ hasText: 'replay' }).filter({ hasText: '200' }).first().waitFor();
      expect(portal.complaints).toEqual([]);
    });
  },
);
