import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually } from '../harness/index.js';
import type { PortalPage } from './browser.js';

const SIZE = { width: 1280, height: 900 };
const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const EVERY_RULE: axe.RunOptions = {
  runOnly: { type: 'tag', values: WCAG },
  // Part of WCAG 2.2, but off by default.
  rules: { 'target-size': { enabled: true } },
};
/** The rules that a color scheme can affect, because `light-dark()` only sets colors. */
const CONTRAST: axe.RunOptions = {
  runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
};

/** The part of a page to check. The page behind a dialog is inert and is checked without the dialog. */
interface Shown {
  readonly page: Page;
  /** A selector, or null for the whole page. */
  readonly within: string | null;
}

const DIALOG = '[role=dialog]';

/**
 * axe's findings, one line each. It injects axe once per document, because `@axe-core/playwright` injects and compiles
 * its half megabyte twice per check.
 */
async function violations({ page, within }: Shown, rules: axe.RunOptions): Promise<string[]> {
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(axe.source);
  const [context, options] = [within ?? 'html', { ...rules, resultTypes: ['violations'] }];
  const found = await page.evaluate<axe.AxeResults>(
    `axe.run(${JSON.stringify(context)}, ${JSON.stringify(options)})`,
  );
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`);
}

/** Lists the page and dialogs that are too wide. Tables and code blocks scroll on their own. */
const TOO_WIDE = `[document.documentElement, ...document.querySelectorAll('[role=dialog]')]
  .filter((element) => element.scrollWidth > element.clientWidth)
  .map((element) => element.tagName + ' ' + element.scrollWidth + ' > ' + element.clientWidth)`;

/** Checks the page in light, in dark, and at 400 % zoom. Leaves it light and wide. */
export async function expectAccessible({ page, complaints }: PortalPage): Promise<void> {
  await eventually('nothing is loading', async () => (await page.locator('.loading').count()) === 0);
  const shown: Shown = { page, within: (await page.locator(DIALOG).count()) > 0 ? DIALOG : null };
  expect(await violations(shown, EVERY_RULE), 'light').toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await violations(shown, CONTRAST), 'dark').toEqual([]);
  await page.setViewportSize({ width: SIZE.width / 4, height: SIZE.height / 4 });
  // An open menu moves into the window a frame later.
  await eventually(
    'everything fits at 400 % zoom',
    async () => (await page.evaluate<string[]>(TOO_WIDE)).length === 0,
  );
  await page.setViewportSize(SIZE);
  await page.emulateMedia({ colorScheme: 'light' });
  expect(complaints).toEqual([]);
}
