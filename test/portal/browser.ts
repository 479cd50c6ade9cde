import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { chromiumPath, whyNoChromium } from '../harness/chromium.js';
import { PATIENCE_MS } from '../harness/eventually.js';
import type { TestService } from '../harness/index.js';
import { mintCode, type SessionTerms } from '../harness/portal.js';

/** The reason why the portal cannot be driven here, or null when it can. In CI, its tests then fail. */
export const missing = whyNoChromium(process.env);
if (missing !== null) console.warn(`the portal is not tried in a browser: ${missing}`);

/** A browser test makes a few hundred requests to the page, each of which waits for a core. */
export const BROWSER_TEST_MS = PATIENCE_MS + 120_000;

const CHROMIUM_FLAGS = [
  // Chromium refuses to sandbox for root, which CI uses.
  '--no-sandbox',
  '--disable-gpu',
  // Software rendering does not need a separate process.
  '--in-process-gpu',
  // A page lives for seconds, so optimizing its code costs more than it saves. This setting saves 7 % of the whole
  // test.
  '--js-flags=--no-opt --no-maglev --no-sparkplug',
];

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath!, args: CHROMIUM_FLAGS });
}

export interface PortalPage {
  readonly page: Page;
  /** Policy violations and uncaught errors of the page. Must stay empty. */
  readonly complaints: string[];
  /** Opens a screen by path and query. */
  readonly open: (path: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface PageOptions {
  readonly terms?: SessionTerms;
  readonly scheme?: 'light' | 'dark';
  readonly width?: number;
  /** The viewer's time zone, e.g. `Asia/Tokyo`. Default: the machine's. */
  readonly timezoneId?: string;
}

/** Opens a browser window with a new portal session of the partner, by following its link. */
export async function openPortalPage(
  browser: Browser,
  service: TestService,
  partnerId: string,
  { terms = {}, scheme = 'light', width = 1280, ...zone }: PageOptions = {},
): Promise<PortalPage> {
  const base = service.process.portal!.url;
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width, height: 900 },
    // Colors that are on their way to another one have no contrast to check.
    reducedMotion: 'reduce',
    ...zone,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  await page.exposeFunction('reportViolation', (text: string) => void complaints.push(text));
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (e) => reportViolation(e.violatedDirective + ' ' + e.blockedURI))`,
  );
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(`${base}/#code=${await mintCode(service.admin, partnerId, terms)}`);
  try {
    await page.getByRole('group', { name: 'Mode' }).waitFor();
  } catch {
    const shown = await page.locator('body').innerText();
    throw new Error(`the portal does not open: ${complaints.join('; ')}\n${shown}`);
  }
  return {
    page,
    complaints,
    open: async (path) => {
      await page.goto(`${base}${path}`);
      // Select by tag, because a heading behind an open dialog has no role.
      await page.locator('h1').waitFor();
    },
    close: () => context.close(),
  };
}

/** The width of an image in pixels, or 0 while it is not decoded. */
export function widthOf(picture: Locator): Promise<number> {
  return picture.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth);
}

/**
 * Presses Tab until `target` has the focus.
 * @throws Error when the keyboard cannot reach it
 */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  const focused = target.and(page.locator(':focus'));
  for (let presses = 0; presses < 150; presses += 1) {
    if ((await focused.count()) > 0) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${target.toString()}`);
}

/** Reaches `target` by Tab and presses `key` there. */
export async function press(page: Page, target: Locator, key = 'Enter'): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press(key);
}

/** Reaches a field by Tab and types into it. */
export async function type(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.type(text);
}
