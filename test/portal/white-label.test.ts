import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { expectAccessible } from './accessible.js';
import {
  BROWSER_TEST_MS,
  launchChromium,
  missing,
  openPortalPage,
  type PortalPage,
  widthOf,
} from './browser.js';

const SQUARE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="28" height="28"><path d="M0 0h28v28H0z"/></svg>';
const LOGO = `data:image/svg+xml;base64,${Buffer.from(SQUARE).toString('base64')}`;
/** How the styles derive the accent of links; without branding it comes from another color. */
const OWN_ACCENT = 'rgb(51, 80, 207)';

let service: TestService;
let partner: TestPartner;
let browser: Browser;

/** Starts a separate portal on the same database and opens it in a browser. */
async function openBranded(env: Record<string, string>): Promise<{
  readonly portal: PortalPage;
  readonly url: string;
  readonly stop: () => Promise<void>;
}> {
  const branded = await startTestService({ role: 'portal', database: service.database, env });
  const both = { ...service, process: branded.process };
  const portal = await openPortalPage(browser, both, partner.id);
  const stop = async (): Promise<void> => {
    await portal.close();
    await branded.stop();
  };
  return { portal, url: branded.process.portal!.url, stop };
}

const styleOf = (element: Locator, name: 'color' | 'backgroundColor' | 'outlineColor'): Promise<string> =>
  element.evaluate(
    (node, property) => String(node.ownerDocument.defaultView!.getComputedStyle(node)[property]),
    name,
  );

describe.skipIf(missing !== null)('a portal with its own branding', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService({ role: 'admin' });
    partner = await service.createPartner('Branded Travel');
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
  });

  // One color is too light for a white background, and one is too dark for a black background.
  it.each([
    ['light', '#ffd400', 'rgb(255, 212, 0)'],
    ['dark', '#0b1f4d', 'rgb(11, 31, 77)'],
  ] as const)(
    'has its name, its logo and its %s accent in buttons, links and focus rings, all readable',
    async (_kind, accent, fill) => {
      const { portal, stop } = await openBranded({
        PORTAL_BRAND_NAME: 'Travel Desk',
        PORTAL_BRAND_LOGO_URL: LOGO,
        PORTAL_BRAND_ACCENT: accent,
      });
      const { page, open } = portal;
      await open('/developers/api-keys');
      await page.locator('.brand').getByText('Travel Desk', { exact: true }).waitFor();
      expect(await page.title()).toBe('API Keys · Travel Desk');
      const logo = page.locator('.brand img');
      expect(await logo.getAttribute('src')).toBe(LOGO);
      await eventually('the logo is drawn', async () => (await widthOf(logo)) === 28);
      expect(await styleOf(page.getByRole('button', { name: 'New key' }), 'backgroundColor')).toBe(fill);

      await open('/developers/webhooks/whe_of_nobody');
      const link = page.getByText('lists your endpoints').getByRole('link');
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const color = await styleOf(link, 'color');
        expect(color).not.toBe(OWN_ACCENT);
        await link.focus();
        expect(await styleOf(link, 'outlineColor')).toBe(color);
      }
      await expectAccessible(portal);
      await open('/developers/api-keys');
      await page.getByRole('button', { name: 'New key' }).click();
      await page.getByRole('dialog').waitFor();
      await expectAccessible(portal);
      await stop();
    },
  );

  it('can be framed by the named sites, and by no others', async () => {
    const { portal, url, stop } = await openBranded({
      PORTAL_URL: 'https://portal.example',
      PORTAL_FRAME_ANCESTORS: 'https://desk.example,https://shop.example',
    });
    const policyOf = async (base: string): Promise<string | null> =>
      (await fetch(`${base}/developers/api-keys`)).headers.get('content-security-policy');
    expect(await policyOf(url)).toContain('; frame-ancestors https://desk.example https://shop.example;');
    expect(portal.complaints).toEqual([]);
    await stop();
    const other = await openBranded({});
    expect(await policyOf(other.url)).toContain(`; frame-ancestors 'none';`);
    await other.stop();
  });
});
