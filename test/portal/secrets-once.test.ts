import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { mintCode } from '../harness/portal.js';
import { BROWSER_TEST_MS, launchChromium, missing, openPortalPage } from './browser.js';

let service: TestService;
let browser: Browser;
let receiver: TestReceiver;
const logLines: string[] = [];

const KEY = /svc_sk_test_[A-Za-z0-9]{32}/;
const SIGNING_SECRET = /whsec_\S+/;

/** Everything that a page stores permanently. */
const STORED = `(async () => JSON.stringify([
  { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state,
  await indexedDB.databases(), await caches.keys(),
]))()`;

async function occurrences(page: Page, text: string): Promise<number> {
  return (await page.content()).split(text).length - 1;
}

/** The requests of a page and their responses. */
interface Exchanges {
  readonly urls: string[];
  readonly answers: string[];
}

function recordExchanges(page: Page): Exchanges {
  const exchanges: Exchanges = { urls: [], answers: [] };
  page.on('request', (request) => exchanges.urls.push(request.url()));
  page.on(
    'response',
    (response) =>
      void response.text().then(
        (text) => exchanges.answers.push(text),
        () => undefined,
      ),
  );
  return exchanges;
}

/** Checks a secret from its dialog on, and returns it. */
async function isShownOnce(page: Page, pattern: RegExp, { urls, answers }: Exchanges): Promise<string> {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Done' }).waitFor();
  const secret = pattern.exec(await dialog.innerText())?.[0] ?? '';
  expect(secret).not.toBe('');
  expect(await occurrences(page, secret)).toBe(1);
  await dialog.getByRole('button', { name: 'Copy' }).click();
  expect(await occurrences(page, secret)).toBe(1);
  // Escape must not close a dialog whose content cannot be shown again.
  await page.keyboard.press('Escape');
  expect(await occurrences(page, secret)).toBe(1);
  await dialog.getByRole('button', { name: 'Done' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await occurrences(page, secret)).toBe(0);
  expect(await page.evaluate<string>(STORED)).not.toContain(secret);
  await page.reload();
  await page.getByRole('table').first().waitFor();
  expect(await occurrences(page, secret)).toBe(0);
  expect(answers.filter((answer) => answer.includes(secret))).toHaveLength(1);
  expect(urls.filter((url) => decodeURIComponent(url).includes(secret))).toEqual([]);
  return secret;
}

describe.skipIf(missing !== null)('a key or a signing secret', { timeout: BROWSER_TEST_MS }, () => {
  beforeAll(async () => {
    service = await startTestService({ logLines });
    browser = await launchChromium();
    receiver = await startReceiver();
  });
  afterAll(async () => {
    await browser.close();
    await receiver.close();
    await service.stop();
  });

  it('appears once on the page and in one response, in no address or log line, and is not stored in plain text', async () => {
    const partner = await service.createPartner('Discreet Travel');
    const { page, open, close } = await openPortalPage(browser, service, partner.id);
    const exchanges = recordExchanges(page);
    const dialog = page.getByRole('dialog');
    const secrets: string[] = [];
    const follow = async (pattern: RegExp): Promise<void> =>
      void secrets.push(await isShownOnce(page, pattern, exchanges));

    await open('/developers/api-keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await dialog.getByRole('textbox', { name: 'Name' }).fill('discreet');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await follow(KEY);
    await page
      .getByRole('row', { name: /discreet/ })
      .getByRole('button', { name: 'Rotate' })
      .click();
    await dialog.getByRole('button', { name: 'Rotate key' }).click();
    await follow(KEY);

    await open('/developers/webhooks');
    await page.getByRole('button', { name: 'New endpoint' }).click();
    await dialog.getByRole('textbox', { name: 'URL' }).fill(receiver.url);
    await dialog.getByRole('button', { name: 'Create endpoint' }).click();
    await follow(SIGNING_SECRET);
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await dialog.getByRole('button', { name: 'Rotate signing secret' }).click();
    await follow(SIGNING_SECRET);

    expect(new Set(secrets).size).toBe(4);
    // The log does contain the call.
    const asked = '/rotate-secret';
    await eventually('the log has the calls', () => logLines.some((line) => line.includes(asked)));
    expect(logLines.filter((line) => secrets.some((secret) => line.includes(secret)))).toEqual([]);
    await close();
  });

  it('removes the code of the link from the address at once', async () => {
    const partner = await service.createPartner();
    const { page, close } = await openPortalPage(browser, service, partner.id);
    expect(page.url()).not.toContain('code');
    expect(await page.evaluate<string>(STORED)).not.toContain('pst_');
    await close();
  });

  it('is out of reach after the session was revoked: the next request reports it and links back', async () => {
    const partner = await service.createPartner();
    const terms = { return_url: 'https://portal.example/back' };
    const { page, open, close } = await openPortalPage(browser, service, partner.id, { terms });
    await open('/developers/api-keys');
    // Until the list is loaded, a pending request could be the one that reports the end of the session.
    await page.getByRole('table').waitFor();
    const revoked = await service.admin.post(
      `/internal/v1/partners/${partner.id}/portal-sessions/revoke-all`,
    );
    expect(revoked.status).toBe(200);
    await page.getByRole('link', { name: 'Webhooks' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    const back = page.getByRole('link', { name: 'Sign in again' });
    expect(await back.getAttribute('href')).toBe('https://portal.example/back');
    await close();
  });

  it('is created only in the session that the page shows, even if the browser has another session', async () => {
    const [partner, other] = [await service.createPartner('First'), await service.createPartner('Second')];
    const { page, open, close, complaints } = await openPortalPage(browser, service, partner.id);
    await open('/balance?mode=live');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('statement.csv');
    await open('/developers/api-keys');
    await page.getByRole('table').waitFor();
    const second = await page.context().newPage();
    await second.goto(`${service.process.portal!.url}/#code=${await mintCode(service.admin, other.id)}`);
    await second.getByText('Second').first().waitFor();
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'You signed in again in another tab' }).waitFor();
    const keys = await service.admin.get(`/internal/v1/partners/${other.id}/api-keys`);
    expect(keys.body.data).toHaveLength(1);
    await page.getByRole('link', { name: 'Reload' }).click();
    await page.getByText('Second').first().waitFor();
    expect(complaints).toEqual([]);
    await close();
  });
});
