import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE_MS, startTestService, type TestService } from '../harness/index.js';
import { expectAccessible } from '../portal/accessible.js';
import { BROWSER_TEST_MS, launchChromium, missing } from '../portal/browser.js';

let service: TestService;
let url: string;

beforeAll(async () => {
  service = await startTestService({ role: 'portal' });
  url = service.process.portal!.url;
});
afterAll(() => service.stop());

interface Fetched {
  readonly address: string;
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

async function read(address: string): Promise<Fetched> {
  const answer = await fetch(url + address);
  return {
    address,
    status: answer.status,
    type: answer.headers.get('content-type') ?? '',
    text: await answer.text(),
  };
}

/** Addresses with fragments that a page or a Markdown file links to. */
function linksOf({ address, type, text }: Fetched): string[] {
  const prose = text.replaceAll(/^```[^]*?^```$/gm, '');
  const found = type.startsWith('text/html')
    ? [...text.matchAll(/ (?:href|src|data-index)="([^"]+)"/g)]
    : /markdown|plain/.test(type) && !address.startsWith('/docs/guides/verifiers/')
      ? [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
      : [];
  return found
    .map(([, link = '']) => (link.startsWith('#') ? address + link : link))
    .filter((link) => !/^[a-z]+:/.test(link));
}

/** Fetches everything that can be reached from the start addresses, once each. */
async function crawl(...start: readonly string[]): Promise<{ pages: Map<string, Fetched>; links: string[] }> {
  const pages = new Map<string, Fetched>();
  const links = new Set<string>(start);
  for (const link of links) {
    const [address = ''] = link.split('#');
    // Every other address belongs to the portal's own page.
    if (!/^\/(docs|assets|llms|reference)/.test(address)) continue;
    if (!pages.has(address)) pages.set(address, await read(address));
    if (link === address) for (const next of linksOf(pages.get(address)!)) links.add(next);
  }
  return { pages, links: [...links] };
}

/** Ids of a page, or the anchors of a Markdown file, whose headings get the ids of the page. */
function anchorsOf(pages: Map<string, Fetched>, address: string): Set<string> {
  const page = pages.get(address.replace(/\.md$/, ''));
  return new Set([...(page?.text ?? '').matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id));
}

describe('the documentation in the portal', () => {
  it('has no dead link, and every page has a Markdown twin', { timeout: PATIENCE_MS }, async () => {
    const { pages, links } = await crawl('/docs', '/reference', '/llms.txt', '/llms-full.txt');
    expect([...pages.values()].filter(({ status }) => status !== 200).map(({ address }) => address)).toEqual(
      [],
    );
    const dead = links.filter((link) => {
      const [address = '', fragment] = link.split('#');
      return fragment !== undefined && pages.has(address) && !anchorsOf(pages, address).has(fragment);
    });
    expect(dead).toEqual([]);
    const html = [...pages.values()].filter(
      ({ address, type }) => /^\/docs\//.test(address) && /html/.test(type),
    );
    expect(html.length).toBeGreaterThan(30);
    for (const { address } of html) {
      const twin = pages.get(`${address}.md`);
      expect([address, twin?.type, twin?.text.startsWith('# ')]).toEqual([
        address,
        'text/markdown; charset=utf-8',
        true,
      ]);
      expect(pages.get('/llms.txt')!.text).toContain(`](${address}.md)`);
      expect(pages.get('/llms-full.txt')!.text).toContain(twin!.text.trim());
    }
    for (const name of [
      'docs/postman.json',
      'docs/openapi/partner.json',
      'docs/openapi/quick-start.arazzo.json',
    ])
      expect(pages.get(`/${name}`)!.text).toBe(readFileSync(name, 'utf8'));
  });

  it.each(['/docs', '/docs/'])('begins with the guides at %s', async (address) => {
    const answer = await fetch(`${url}${address}`);
    expect([answer.status, new URL(answer.url).pathname]).toEqual([200, '/docs/guides']);
  });

  it('lets no page run or load anything from elsewhere', async () => {
    const page = await fetch(`${url}/docs/guides/quick-start`);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self';");
    expect(await page.text()).not.toMatch(
      /<script(?! type="module" src="\/)|style="|(src|href)="https?:\/\/[^"]*\.(js|css|woff2)"/,
    );
    expect(
      (await fetch(`${url}/docs/guides/verifiers/verify-webhook-signature.ts`)).headers.get('content-type'),
    ).toBe('text/plain; charset=utf-8');
  });

  it.each(['/docs/nothing', '/docs/..%2f..%2fpackage.json', '/docs/../../package.json', '/docs/guides.html'])(
    'has no page at %s',
    async (address) => {
      const answer = await read(address);
      expect(answer.text).not.toContain('"workspaces"');
      // fetch() itself resolves `..`, so that address is one of the portal.
      if (address.startsWith('/docs/../')) return;
      expect([400, 404]).toContain(answer.status);
    },
  );

  it('has each operation under its id, in the reference and at the address that earlier links used', async () => {
    const { paths } = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8')) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const overview = await read('/reference');
    const ids = Object.values(paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    for (const id of ids) {
      expect(overview.text).toContain(`id="${id}"`);
      expect(overview.text).toMatch(new RegExp(`href="/docs/reference/[a-z-]+#${id}"`));
    }
  });
});

describe.skipIf(missing !== null)('a documentation page in a browser', { timeout: BROWSER_TEST_MS }, () => {
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launchChromium();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(PATIENCE_MS);
    page = await context.newPage();
    await page.exposeFunction('reportViolation', (text: string) => void complaints.push(text));
    await page.addInitScript(
      `addEventListener('securitypolicyviolation', (e) => reportViolation(e.violatedDirective + ' ' + e.blockedURI))`,
    );
    page.on('pageerror', (error) => complaints.push(String(error)));
  });
  afterAll(() => browser.close());

  it.each([
    '/docs/guides/quick-start',
    '/docs/reference',
    '/docs/reference/orders',
    '/docs/errors',
    '/docs/nothing',
  ])('is accessible in light, in dark and at 320 pixels: %s', async (address) => {
    await page.goto(url + address);
    await expectAccessible({
      page,
      complaints,
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
    });
  });

  it('finds a section by its words, with the keyboard alone', async () => {
    await page.goto(`${url}/docs/guides`);
    await page.keyboard.press('/');
    await page.keyboard.type('daily spend limit');
    await page.getByRole('option').first().waitFor();
    expect(await page.getByRole('option').first().innerText()).toMatch(/Daily spend limit/i);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/docs\/guides\/api-keys#daily-spend-limit$/);
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole('combobox').fill('spend limit');
    const { x, width } = (await page.getByRole('option').first().boundingBox())!;
    expect([x >= 0, x + width <= 320]).toEqual([true, true]);
    await page.getByRole('combobox').fill('xyzzy');
    await page.getByText('Nothing found. Try fewer words.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Nothing found. Try fewer words.').waitFor({ state: 'hidden' });
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it('shows all samples in the chosen language, also on the next page', async () => {
    await page.goto(`${url}/docs/reference/orders`);
    const shown = page.locator('.samples figure:visible');
    expect(await shown.first().getAttribute('data-language')).toBe('bash');
    await page.getByRole('radio', { name: 'Python' }).first().check();
    await page.goto(`${url}/docs/reference/esims`);
    const languages = await shown.evaluateAll((all) => all.map((each) => each.getAttribute('data-language')));
    expect([...new Set(languages)]).toEqual(['python']);
  });

  it('opens the list of pages on a phone without a script', async () => {
    const context = await browser.newContext({
      javaScriptEnabled: false,
      viewport: { width: 390, height: 800 },
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const phone = await context.newPage();
    await phone.goto(`${url}/docs/guides`);
    await phone.getByRole('button', { name: 'Pages' }).click();
    await phone.getByRole('link', { name: 'Idempotency' }).first().click();
    await phone.getByRole('heading', { level: 1, name: 'Idempotency' }).waitFor();
    await context.close();
  });
});
