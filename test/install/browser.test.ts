import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE_MS, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { issueEsim } from '../harness/order-steps.js';
import { expectAccessible } from '../portal/accessible.js';
import { BROWSER_TEST_MS, launchChromium, missing, type PortalPage } from '../portal/browser.js';
import { COMPUTER, createLink, IPHONE, type TestLink } from './install-steps.js';

const ANDROID =
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36';

let service: TestService;
let browser: Browser;
let api: HttpClient;
let link: TestLink;

beforeAll(async () => {
  if (missing !== null) return;
  service = await startTestService();
  api = (await service.createPartner('Kestrel Travel and a very long name without any end')).sandbox;
  link = await createLink(api, await issueEsim(api, 'pkg_jp_1gb_7d'));
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

/** Opens a page as a phone or computer, and collects what the browser refused. */
async function open(path: string, userAgent: string): Promise<PortalPage> {
  const context = await browser.newContext({ userAgent, viewport: { width: 390, height: 844 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  // The page of an invalid link has that status on purpose.
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('status of 404'))
      complaints.push(message.text());
  });
  const show = async (at: string): Promise<void> => void (await page.goto(service.process.install!.url + at));
  await show(path);
  return { page, complaints, open: show, close: () => context.close() };
}

describe.skipIf(missing !== null)('the install page in a browser', () => {
  it.each([
    ['an iPhone', IPHONE],
    ['Android', ANDROID],
    ['a computer', COMPUTER],
  ])(
    'is accessible on %s with everything open, in light, in dark and at 320 pixels',
    async (_name, agent) => {
      const shown = await open(link.path, agent);
      for (const summary of await shown.page.locator('main summary').all()) await summary.click();
      await expectAccessible(shown);
      await shown.close();
    },
    BROWSER_TEST_MS,
  );

  it('is accessible in every other state', { timeout: BROWSER_TEST_MS }, async () => {
    const used = await createLink(api, await issueEsim(api, 'pkg_fr_1gb_7d'));
    const guarded = await createLink(api, link.esimId, { access_code: true });
    await api.post(`/v1/sandbox/esims/${used.esimId}/activate`);
    const shown = await open('/i/x', IPHONE);
    for (const path of ['/i/x', guarded.path, used.path, `${used.path}?show=1`]) {
      await shown.open(path);
      await expectAccessible(shown);
    }
    await api.post(`/v1/sandbox/esims/${used.esimId}/expire`);
    await shown.open(used.path);
    await expectAccessible(shown);
    await shown.close();
  });

  it(
    'takes the access code and changes the language without script',
    { timeout: BROWSER_TEST_MS },
    async () => {
      const guarded = await createLink(api, link.esimId, { access_code: true });
      const { page, close } = await open(guarded.path, IPHONE);
      await page.getByLabel('Access code').fill('1');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('alert').getByText('not correct').waitFor();
      await page.getByLabel('Access code').fill(guarded.accessCode!);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'Your eSIM for Japan' }).waitFor();
      await page.reload();
      await page.locator('.lang summary').click();
      await page.getByRole('link', { name: 'Deutsch' }).click();
      await page.getByRole('heading', { name: 'Ihre eSIM für Japan' }).waitFor();
      expect(await page.getByRole('link', { name: 'Auf diesem iPhone installieren' }).count()).toBe(1);
      await close();
    },
  );
});
