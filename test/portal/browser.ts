import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { chromiumPath, whyNoChromium } from '../harness/chromium.js';
import { PATIENCE_MS } from '../harness/eventually.js';
import type { TestService } from '../harness/index.js';
import { mintCode, type SessionTerms } from '../harness/portal.js';

/** Why the portal cannot be driven here; null when it can. In the gate its tests fail then. */
export const missing = whyNoChromium(process.env);
if (missing !== null) console.warn(`the portal is not tried in a browser: ${missing}`);

/** A test in a browser asks the page a few hundred things, each of which waits for a core. */
export const BROWSER_TEST_MS = PATIENCE_MS + 120_000;

const CHROMIUM_FLAGS = [
  // Chromium refuses a sandbox to root, which the gate runs as.
  '--no-sandbox',
  '--disable-gpu',
  // What is left of its work is drawing, which needs no process of its own.
  '--in-process-gpu',
  // A page lives for seconds: to compile its code for speed costs more than it gives, 7 % of all that such a test takes.
  '--js-flags=--no-opt --no-maglev --no-sparkplug',
];

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath!, args: CHROMIUM_FLAGS });
}

export interface PortalPage {
  readonly page: Page;
  /** What the page's policy has stopped, and errors that nobody caught. Must stay empty. */
  readonly complaints: string[];
  /** Opens a screen: the path with its query. */
  readonly open: (path: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface PageOptions {
  readonly terms?: SessionTerms;
  readonly scheme?: 'light' | 'dark';
  readonly width?: number;
  /** The viewer's zone, such as `Asia/Tokyo`; that of the machine unless said. */
  readonly timezoneId?: string;
}

/** A browser window of its own, in a new session of the partner, that has followed its link. */
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
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  } catch {
    const shown = await page.locator('body').innerText();
    throw new Error(`the portal does not open: ${complaints.join('; ')}\n${shown}`);
  }
  return {
    page,
    complaints,
    open: async (path) => {
      await page.goto(`${base}${path}`);
      // By tag: behind an open dialog it has no role.
      await page.locator('h1').waitFor();
    },
    close: () => context.close(),
  };
}

/** The width of a picture, in pixels; 0 of one that cannot be decoded, or is not yet. */
export function widthOf(picture: Locator): Promise<number> {
  return picture.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth);
}

/** Goes on by Tab until `target` has the focus. @throws Error when the keyboard does not get there */
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
