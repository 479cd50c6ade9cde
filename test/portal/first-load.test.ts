import { gzipSync } from 'node:zlib';
import type { Browser, Response } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE_MS, startTestService, type TestService } from '../harness/index.js';
import { mintCode } from '../harness/portal.js';
import { BROWSER_TEST_MS, launchChromium, missing } from './browser.js';

const BUDGET_BYTES = 200_000;

let service: TestService;
let browser: Browser;

describe.skipIf(missing !== null)('the first load of the portal', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  it('is at most 200 kB compressed, without the chunks of other screens', async () => {
    const partner = await service.createPartner();
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const loaded = new Map<string, Response>();
    page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith('/portal/')) loaded.set(pathname, response);
    });
    const base = service.process.portal!.url;
    await page.goto(`${base}/#code=${await mintCode(service.admin, partner.id)}`);
    await page.getByRole('heading', { name: 'No orders in this period' }).waitFor();
    const sizes = await Promise.all(
      [...loaded].map(async ([path, response]) => [path, gzipSync(await response.body()).length] as const),
    );
    const total = sizes.reduce((sum, [, size]) => sum + size, 0);
    console.log(`first load: ${(total / 1_000).toFixed(0)} kB compressed in ${sizes.length} files`);
    expect(sizes.length).toBeGreaterThan(3);
    expect(total).toBeLessThanOrEqual(BUDGET_BYTES);
    expect([...loaded.keys()].filter((path) => /endpoint|balance|doctor/.test(path))).toEqual([]);
    await page.close();
  });

  it('shows a message when JavaScript is disabled', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(service.process.portal!.url);
    expect(await page.locator('body').innerText()).toContain('needs JavaScript');
    await context.close();
  });
});
