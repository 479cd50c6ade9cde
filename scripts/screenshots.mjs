// Takes the README's screenshots of the portal, docs/images/*.png. Starts the service as `npm start` does, on free
// ports and with its own data directory, places orders and breaks a receiver. `node scripts/screenshots.mjs`; needs Chromium.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { chromiumPath } from '../test/harness/chromium.ts';
import { freePort } from '../chaos/free-port.ts';

const root = path.resolve(import.meta.dirname, '..');
const images = path.join(root, 'docs/images');
if (chromiumPath === null) {
  console.error('screenshots needs Chromium: apt-get install chromium, or CHROMIUM_PATH');
  process.exit(1);
}
const SIZE = { width: 1360, height: 860 };
const START_TIMEOUT_MS = 180_000;

/** Responds with 200, or with 503 while broken. */
async function startReceiver() {
  const state = { broken: false };
  const server = createServer((request, response) => {
    request
      .resume()
      .on('end', () => response.writeHead(state.broken ? 503 : 200).end(state.broken ? 'maintenance' : ''));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { state, server, url: `http://127.0.0.1:${server.address().port}/webhooks` };
}

/** @returns the values from the service's banner, and the API's address */
async function startService(dataDir) {
  const [port, adminPort, portalPort] = [await freePort(), await freePort(), await freePort()];
  const child = spawn(process.execPath, ['--enable-source-maps', 'scripts/start.mjs'], {
    cwd: root,
    env: {
      ...withoutSettings(process.env),
      ENV_FILE: '',
      DATA_DIR: dataDir,
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      PORTAL_PORT: String(portalPort),
      INSTALL_PORT: String(await freePort()),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  stopService = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  let text = '';
  child.stdout.on('data', (bytes) => (text += bytes));
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!/^ready$/m.test(text)) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`npm start is not ready:\n${text}`);
    await sleep(100);
  }
  const link = /https?:\/\/\S+\/#code=\S+/.exec(text)?.[0];
  const key = /svc_sk_test_[A-Za-z0-9]{32}/.exec(text)?.[0];
  if (!link || !key) throw new Error('the banner has no link or no key');
  return { link, key, api: `http://127.0.0.1:${port}` };
}

/**
 * Keeps only the variables needed to find programs. A `DATABASE_URL` from this shell would make every role use that
 * database.
 */
function withoutSettings({ PATH, HOME, TMPDIR }) {
  return { PATH, HOME, ...(TMPDIR ? { TMPDIR } : {}) };
}

async function order({ api, key }) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ package_id: 'pkg_fr_1gb_7d' });
  const init = { method: 'POST', headers: { ...headers, 'idempotency-key': crypto.randomUUID() }, body };
  const answer = await fetch(`${api}/v1/orders`, init);
  if (answer.status !== 202) throw new Error(`no order: ${answer.status} ${await answer.text()}`);
}

async function take(page, name) {
  // Rows of a list may still be loading.
  await page.waitForLoadState('networkidle').catch(() => {});
  await page.screenshot({ path: path.join(images, `${name}.png`) });
  console.log(`docs/images/${name}.png`);
}

async function lookAround(browser, service, receiver) {
  const page = await browser.newPage({ viewport: SIZE, colorScheme: 'light', reducedMotion: 'reduce' });
  await page.goto(service.link);
  const base = new URL(service.link).origin;
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  await page.goto(`${base}/developers/api-keys`);
  await page.getByRole('table').waitFor();
  await take(page, 'portal-api-keys');

  await page.goto(`${base}/developers/webhooks`);
  await page.getByRole('button', { name: 'New endpoint' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'URL' }).fill(receiver.url);
  await dialog.getByRole('button', { name: 'Create endpoint' }).click();
  await dialog.getByRole('button', { name: 'Done' }).click();
  for (let orders = 0; orders < 6; orders += 1) await order(service);
  await page.getByRole('link', { name: receiver.url }).click();
  const log = page.getByRole('table', { name: 'Delivery log' });
  await log.getByText('200').nth(5).waitFor();
  receiver.state.broken = true;
  for (let orders = 0; orders < 2; orders += 1) await order(service);
  await log.getByText('503').nth(1).waitFor();
  await log.evaluate((table) => table.closest('section').scrollIntoView());
  await take(page, 'portal-delivery-log');
  await log.getByRole('row').filter({ hasText: '503' }).first().getByRole('link', { name: /dlv_/ }).click();
  await dialog.getByRole('heading', { name: 'Attempts' }).waitFor();
  await page.emulateMedia({ colorScheme: 'dark' });
  await take(page, 'portal-delivery-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(`${base}/developers/webhooks`);
  await page.getByRole('switch').first().waitFor();
  await take(page, 'portal-webhooks');
  await page.goto(base);
  await page.getByRole('heading', { name: 'Latest orders' }).waitFor();
  await take(page, 'portal-home');
}

mkdirSync(images, { recursive: true });
const folder = mkdtempSync(path.join(tmpdir(), 'portal-pictures-'));
const receiver = await startReceiver();
let stopService = () => Promise.resolve();
const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
try {
  await lookAround(browser, await startService(path.join(folder, 'data')), receiver);
} finally {
  await browser.close();
  await stopService();
  receiver.server.close();
  receiver.server.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}
