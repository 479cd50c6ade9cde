import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import {
  BROWSER_TEST_MS,
  launchChromium,
  missing,
  openPortalPage,
  type PortalPage,
  press,
  tabTo,
  type,
} from './browser.js';

const IN_DIALOG = `document.activeElement?.closest('[role=dialog]') != null`;

let service: TestService;
let browser: Browser;
let receiver: TestReceiver;
let portal: PortalPage;

describe.skipIf(missing !== null)(
  'keyboard navigation by role and name',
  { timeout: BROWSER_TEST_MS },
  () => {
    beforeAll(async () => {
      service = await startTestService();
      browser = await launchChromium();
      receiver = await startReceiver();
    });
    afterAll(async () => {
      await browser.close();
      await receiver.close();
      await service.stop();
    });
    beforeEach(async () => {
      const partner = await service.createPartner('Keyboard Travel');
      portal = await openPortalPage(browser, service, partner.id);
    });
    afterEach(async () => {
      expect(portal.complaints).toEqual([]);
      await portal.close();
    });

    it('reaches Developers > API Keys > New key: shows the key once, then rotates and revokes it', async () => {
      const { page } = portal;
      const developers = page.getByRole('navigation', { name: 'Developers' });
      await press(page, developers.getByRole('link', { name: 'API Keys' }));
      await press(page, page.getByRole('button', { name: 'New key' }));
      const dialog = page.getByRole('dialog');
      await type(page, dialog.getByRole('textbox', { name: 'Name' }), 'checkout server');
      await tabTo(page, dialog.getByRole('radio', { name: 'Sandbox' }));
      await page.keyboard.press('ArrowDown');
      expect(await dialog.getByRole('radio', { name: 'Live' }).isChecked()).toBe(true);
      await page.keyboard.press('ArrowUp');
      await press(page, dialog.getByRole('button', { name: 'Create key' }));
      await dialog.getByRole('button', { name: 'Copy' }).waitFor();
      expect(await dialog.innerText()).toMatch(/svc_sk_test_[A-Za-z0-9]{32}/);
      // Going back would lose the key, so it needs a confirmation.
      await page.evaluate('history.back()');
      await dialog.getByText('Leave without the key?').waitFor();
      await press(page, dialog.getByRole('button', { name: 'Stay' }));
      expect(await dialog.innerText()).toMatch(/svc_sk_test_[A-Za-z0-9]{32}/);
      await press(page, dialog.getByRole('button', { name: 'Done' }));
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'New key' }).and(page.locator(':focus')).waitFor();

      const row = page.getByRole('row', { name: /checkout server/ });
      await press(page, row.getByRole('button', { name: 'Rotate', exact: true }));
      await press(page, dialog.getByRole('button', { name: 'Rotate key' }));
      await press(page, dialog.getByRole('button', { name: 'Done' }));
      await page.getByText('Replaced', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Rotate', exact: true }).and(page.locator(':focus')).waitFor();

      const replaced = row.filter({ hasText: 'Replaced' });
      await press(page, replaced.getByRole('button', { name: 'Revoke', exact: true }));
      await press(page, dialog.getByRole('button', { name: 'Revoke key' }));
      const revoked = row.filter({ hasText: 'Revoked' });
      await revoked.waitFor();
      // Its buttons are gone, so the focus stays in its row.
      await revoked.locator(':focus').waitFor();
    });

    it('reaches Developers > Webhooks > New endpoint: the secret once, the switch, and a test event in the log', async () => {
      const { page } = portal;
      await press(page, page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }));
      await press(page, page.getByRole('button', { name: 'New endpoint' }).first());
      const dialog = page.getByRole('dialog');
      await type(page, dialog.getByRole('textbox', { name: 'URL' }), receiver.url);
      await press(page, dialog.getByRole('checkbox', { name: 'order.issued' }), 'Space');
      await press(page, dialog.getByRole('button', { name: 'Create endpoint' }));
      await dialog.getByRole('button', { name: 'Copy' }).waitFor();
      await press(page, dialog.getByRole('button', { name: 'Done' }));

      const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: receiver.url }) });
      const toggle = page.getByRole('switch', { name: receiver.url });
      await press(page, toggle, 'Space');
      await row.getByText('Disabled').waitFor();
      expect(await toggle.getAttribute('aria-checked')).toBe('false');
      await press(page, toggle, 'Space');
      await row.getByText('Enabled').waitFor();

      await press(page, row.getByRole('button', { name: 'Send test event' }));
      await press(page, row.getByRole('link', { name: receiver.url }));
      await page.getByRole('heading', { name: 'Delivery log' }).waitFor();
      const log = page.getByRole('table', { name: 'Delivery log' });
      await log.waitFor();
      const headers = await log.getByRole('columnheader').allInnerTexts();
      expect(headers).toEqual(['Event', 'Delivery', 'Status code', 'Latency', 'Time']);
      const cells = log.getByRole('row').filter({ hasText: 'webhook.test' }).first().getByRole('cell');
      await cells.filter({ hasText: '200' }).first().waitFor();
      expect(await cells.nth(2).innerText()).toBe('200');
      expect(await cells.nth(3).innerText()).toMatch(/^[\d,.]+ m?s$/);

      await press(page, log.getByRole('link', { name: /dlv_/ }).first());
      await dialog.getByRole('heading', { name: 'Attempts' }).waitFor();
      await dialog.getByRole('list', { name: 'Phase times' }).waitFor();
      expect(await dialog.getByRole('region', { name: 'Request body' }).innerText()).toContain(
        'webhook.test',
      );
      await press(page, dialog.getByRole('tab', { name: 'Response' }), 'ArrowRight');
      await page.keyboard.press('Enter');
      expect(await dialog.getByRole('region', { name: 'Request headers' }).innerText()).toMatch(
        /x-service-event/i,
      );
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    });

    it('keeps Tab inside an open dialog, closes it with Escape and restores the focus', async () => {
      const { page, open } = portal;
      await open('/developers/api-keys');
      const opener = page.getByRole('button', { name: 'New key' });
      await press(page, opener);
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: 'Name' }).waitFor();
      for (let presses = 0; presses < 12; presses += 1) {
        await page.keyboard.press('Tab');
        // At the end, a focus guard sends the focus on. The parts of a date field are below their field.
        await eventually('the focus is in the dialog', () => page.evaluate<boolean>(IN_DIALOG));
      }
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await opener.and(page.locator(':focus')).waitFor();
    });

    it('never mixes modes with the mode switch, whose state is in the address', async () => {
      const { page, open } = portal;
      await open('/developers/api-keys');
      await press(page, page.getByRole('button', { name: 'New key' }));
      const dialog = page.getByRole('dialog');
      await type(page, dialog.getByRole('textbox', { name: 'Name' }), 'only sandbox');
      await press(page, dialog.getByRole('button', { name: 'Create key' }));
      await press(page, dialog.getByRole('button', { name: 'Done' }));
      await page.getByRole('row', { name: /only sandbox/ }).waitFor();
      await tabTo(page, page.getByRole('radio', { name: 'Sandbox' }));
      await page.keyboard.press('ArrowRight');
      await page.getByRole('heading', { name: 'No Live keys yet' }).waitFor();
      expect(new URL(page.url()).searchParams.get('mode')).toBe('live');
      expect(await page.getByRole('row', { name: /only sandbox/ }).count()).toBe(0);
      await page.reload();
      await page.getByRole('heading', { name: 'No Live keys yet' }).waitFor();
      expect(await page.getByRole('radio', { name: 'Live' }).isChecked()).toBe(true);
    });

    it('opens a screen by its name with Ctrl+K', async () => {
      const { page } = portal;
      // The page may not have its listener yet.
      await eventually('the palette', async () => {
        await page.keyboard.press('Control+k');
        return (await page.getByRole('dialog').count()) > 0;
      });
      await page.getByRole('dialog').getByRole('combobox').and(page.locator(':focus')).waitFor();
      await page.keyboard.type('balan');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'Balance' }).waitFor();
    });
  },
);
