import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE_MS, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { exchange, mintCode } from '../harness/portal.js';
import { BROWSER_TEST_MS, launchChromium, missing } from './browser.js';

let service: TestService;
let partner: TestPartner;
let browser: Browser;

describe.skipIf(missing !== null)('a link to the portal', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    partner = await service.createPartner('Linked Travel');
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  const linkOf = (code: string): string => `${service.process.portal!.url}/#code=${code}`;

  it('goes on into the portal when it is opened again in the same browser', async () => {
    const context = await browser.newContext();
    context.setDefaultTimeout(PATIENCE_MS);
    const code = await mintCode(service.admin, partner.id);
    for (let opening = 0; opening < 2; opening++) {
      const page = await context.newPage();
      await page.goto(linkOf(code));
      await page.getByRole('navigation').first().waitFor();
      expect(page.url()).not.toContain(code);
    }
    await context.close();
  });

  it('is not used up by a browser that blocks cookies, which is told so', async () => {
    const context = await browser.newContext();
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await page.addInitScript(
      `Object.defineProperty(document, 'cookie', { get: () => '', set: () => undefined })`,
    );
    const code = await mintCode(service.admin, partner.id);
    await page.goto(linkOf(code));
    await page.getByRole('heading', { name: 'Your browser blocks cookies' }).waitFor();
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    expect((await exchange(service.process.portal!.url, code)).status).toBe(200);
    await context.close();
  });
});
