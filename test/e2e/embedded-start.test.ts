import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, HttpClient } from '../harness/index.js';
import type { NodeChild } from '../harness/child-process.js';
import { type Banner, EmbeddedPlace, pasteInto, readBanner, shells } from '../harness/embedded-start.js';
import { freePort } from '../../chaos/free-port.js';
import { exchange } from '../harness/portal.js';
import { Page } from '../docs/page.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

/** Limit for the fastest of several stops, because the machine may run other tests. */
const STOP_MS = 15_000;
const stopTimes: number[] = [];

let place: EmbeddedPlace;
let running: NodeChild;
/** One per start, oldest first. */
const banners: Banner[] = [];
let firstOrderId: string;

beforeAll(async () => {
  place = await EmbeddedPlace.make();
});

afterAll(() => place.remove());

/** Starts on the same folder, reads the banner and returns the duration. */
async function start(): Promise<number> {
  const startedAt = performance.now();
  running = place.launch();
  await running.ready();
  banners.push(readBanner(running));
  return performance.now() - startedAt;
}

/** Presses Ctrl-C. */
async function interrupt(): Promise<void> {
  const interruptedAt = performance.now();
  running.signal('SIGINT');
  expect(await running.exited()).toBe(0);
  stopTimes.push(Math.round(performance.now() - interruptedAt));
}

const newest = (): Banner => banners.at(-1)!;

async function statusOf({ api }: Banner): Promise<number> {
  return (await api.get('/v1/me')).status;
}

describe('npm start on a fresh machine', () => {
  it('starts, and prints the URLs and the next commands', async () => {
    console.log(`first start: ${Math.round(await start())} ms`);
    expect(running.stdout).toContain(place.dataDir);
    const lines = running.stdout.slice(running.stdout.indexOf('── Partner eSIM')).split('\n');
    // A pipe also gets log lines when its buffer is full.
    const banner = lines.filter((line) => !line.startsWith('{'));
    // If the data is in its default folder, the banner fits a terminal of 80 columns and 24 rows, with the cursor in
    // the
    // last row.
    const usual = banner.map((line) => line.replace(place.dataDir, '.data'));
    expect(usual.filter((line) => line.length > 80)).toEqual([]);
    // At a terminal, the last line also names the log.
    expect(usual.at(-3)!.length + '; log: .data/service.log'.length).toBeLessThanOrEqual(80);
    expect(banner.length).toBeLessThanOrEqual(24);
    expect(banner.findIndex((line) => line.includes('#code='))).toBe(2);
    expect(running.stdout).toContain('SIMULATED wholesaler');
    expect(running.stdout.trimEnd().split('\n')).toContain('ready');
    for (const secret of ['secrets.env', 'demo-webhook.json', 'demo.env']) {
      expect(statSync(path.join(place.dataDir, secret)).mode & 0o777, secret).toBe(0o600);
    }
    expect((await fetch(`http://127.0.0.1:${place.adminPort}/readyz`)).status).toBe(200);
  });

  it('prints a single-use portal link first', async () => {
    const [portalUrl, code] = newest().portalLink.split('/#code=');
    const opened = await exchange(portalUrl!, code!);
    expect(opened.body.data).toMatchObject({ partner: { name: 'Demo Travel' }, modes: ['sandbox', 'live'] });
    expect((await exchange(portalUrl!, code!)).status).toBe(401);
  });

  it('prints its progress from the first second, and the time it took', () => {
    const steps = [...running.stdout.matchAll(/^starting, (\d+\.\d) s: (.+)$/gm)];
    expect(steps.map(([, , step]) => step)).toEqual([
      expect.stringContaining('PostgreSQL in '),
      'migrations',
      'API, admin API, portal, install page and worker',
      'the demo partner and the catalogs',
    ]);
    const up = Number(/ up in (\d+\.\d) s /.exec(running.stdout)![1]);
    expect(up).toBeGreaterThanOrEqual(Number(steps.at(-1)![1]));
  });

  it.each(shells())(
    'prints a block that works when it is pasted into %s: a Sandbox order, and a Live order with its charge',
    async (shell) => {
      const { block, api } = newest();
      expect(block.split('\n').filter((line) => /^\s*#|!/.test(line))).toEqual([]);
      const { stdout, stderr } = pasteInto(shell, block);
      expect(stderr).not.toMatch(/not found|no matches|event not found|curl: /);
      // Two concatenated responses.
      const [order, statement] = JSON.parse(`[${stdout.trim().replaceAll('}{', '},{')}]`) as [
        { data: { id: string; status: string; esims: object[] } },
        { data: { type: string; order_id: string | null }[] },
      ];
      expect(order).toMatchObject({ data: { status: 'issued', esims: [{ status: 'issued' }] } });
      firstOrderId = order.data.id;
      expect(statement.data.map(({ type }) => type)).toContain('charge');
      expect((await api.get(`/v1/orders/${firstOrderId}`)).body.data.mode).toBe('sandbox');
    },
  );

  it.each(shells())("supports the README's tour when it is pasted into %s", (shell) => {
    const lines = new Page('README.md').codes('## Five-minute tour', 'bash').join('');
    const here = lines.replaceAll(
      'npm run portal',
      `DATA_DIR=${place.dataDir} ENV_FILE= node scripts/start.mjs portal-link`,
    );
    const { stdout, stderr } = pasteInto(shell, `. ${place.dataDir}/demo.env\n${here}`);
    expect(stderr).not.toMatch(/not found|no matches|event not found|curl: /);
    const [responses = '', link] = stdout.trim().split(/(?=http:\/\/localhost:\d+\/#code=pst_)/);
    expect(link).toMatch(/^\S+pst_[\w-]{43}$/);
    const answers = JSON.parse(`[${responses.trim().replaceAll('}{', '},{')}]`) as { data: unknown }[];
    expect(answers).toMatchObject([
      { data: [{ kind: 'base' }, {}, {}] },
      { data: { status: 'pending' } },
      { data: { activation_code: expect.stringMatching(/^LPA:/) } },
      { data: { status: 'active' } },
      { data: { status: 'active', data: { used_bytes: 800_000_000 } } },
      { data: expect.arrayContaining([expect.objectContaining({ type: 'charge' })]) },
    ]);
  });

  it("supports the portal team's guide, whose order needs review, and prints a fresh link on request", () => {
    const guide = new Page('docs/guides/portal-team.md');
    const [shell] = shells();
    const tasks = [
      '## 1. Create a partner',
      '## 2. Top up a wallet',
      '## 3. Decide a refund request',
      '## 5. Suspend and reinstate a partner',
    ];
    const [listing] = guide.code('## 4. Settle an order that needs review', 'bash').split('\nadmin');
    const lines = [
      guide.code('## Prepare', 'bash').replace('.data/', `${place.dataDir}/`),
      ...tasks.flatMap((task) => guide.codes(task, 'bash')),
      `${listing}\n`,
      guide.code('## Look something up', 'bash'),
    ];
    const { stdout, stderr } = pasteInto(shell!, lines.join(''));
    expect(stderr).not.toMatch(/not found|no matches|event not found|curl: /);
    const answers = JSON.parse(`[${stdout.trim().split('\n').join()}]`) as { data: object }[];
    expect(answers).toMatchObject([
      { data: { mode: 'sandbox', name: 'First key' } },
      { data: { url: expect.stringContaining('#code=') } },
      { data: { brand: { name: 'Acme', accent: '#0a66c2' } } },
      { data: { mode: 'live', spend_limit: { per: 'day', amount: { amount: 20_000 } } } },
      { data: { type: 'deposit' } },
      { data: { low_balances: [{ amount: 10_000, currency: 'USD' }] } },
      { data: [{ available: { amount: 50_000 } }] },
      { data: { status: 'pending', reason: 'not_working' } },
      { data: { status: 'approved', amount: { amount: 110 } } },
      { data: { status: 'suspended', suspended_reason: 'Invoice 118 is overdue.' } },
      { data: { status: 'active', suspended_reason: null } },
      { data: expect.any(Array) },
      { data: [{ type: 'order', label: 'demo-needs-review', status: 'processing' }] },
      { data: { reference: 'demo-needs-review', timeline: [{ kind: 'accepted' }] } },
    ]);
    const link = `DATA_DIR=${place.dataDir} ENV_FILE= node scripts/start.mjs portal-link`;
    expect(pasteInto(shell!, link).stdout).toMatch(/^http:\/\/localhost:\d+\/#code=pst_[\w-]{43}$/m);
  });

  it('stores the keys in a file for other terminals', () => {
    const { key } = newest();
    const file = path.join(place.dataDir, 'demo.env');
    const named = /; keys: (\. \S+demo\.env)/.exec(running.stdout)![1]!;
    expect(named).toBe(`. ${file}`);
    for (const shell of shells()) {
      const printed = pasteInto(shell, `${named}\nprintenv ESIM_API_KEY ESIM_LIVE_KEY ESIM_BASE_URL`).stdout;
      expect(printed).toMatch(
        new RegExp(`^${key}\nsvc_sk_live_\\w{32}\nhttp://127\\.0\\.0\\.1:${place.port}$`, 'm'),
      );
    }
  });

  it('receives and verifies its own webhook, and prints it', async () => {
    await eventually('the webhook is printed', () => running.stdout.includes(`"order_id":"${firstOrderId}"`));
    expect(running.stdout).toMatch(/^webhook {2}order\.issued {2}signature ok/m);
    expect(running.stdout).not.toContain('REJECTED');
  });

  it('stops on Ctrl-C with exit code 0, and leaves no PostgreSQL behind', async () => {
    await interrupt();
    expect(running.stdout).toMatch(/^stopping$[^]*^stopped$/m);
    // PostgreSQL stops last and finds no open connection of the service.
    expect(running.stdout).not.toContain('57P01');
    expect(await place.postgresPids()).toEqual([]);
    expect(place.companions()).toEqual([]);
    expect(running.complaints).toEqual([]);
  });

  it('starts again with the same data and keys', async () => {
    console.log(`second start: ${Math.round(await start())} ms`);
    expect(newest().block).toBe(banners[0]!.block);
    expect(await statusOf(banners[0]!)).toBe(200);
    expect((await newest().api.get(`/v1/orders/${firstOrderId}`)).body.data.status).toBe('issued');
  });

  it('is reported by a second start on the same data, whatever its ports, and that start changes no files or webhooks', async () => {
    const files = ['demo.env', 'demo-webhook.json', 'running.json', 'postgres/postmaster.pid'];
    const contents = (): string[] =>
      files.map((file) => readFileSync(path.join(place.dataDir, file), 'utf8'));
    const before = contents();
    const refused = [
      `cannot start: already running here, at http://localhost:${place.port} (process ${running.pid})`,
      'Stop it (Ctrl-C in its terminal), or start another one with its own folder and ports:',
      '  DATA_DIR=<folder> PORT=<port> ADMIN_PORT=<port> PORTAL_PORT=<port> INSTALL_PORT=<port> npm start',
    ];
    const [PORT, ADMIN_PORT, PORTAL_PORT] = [await freePort(), await freePort(), await freePort()].map(
      String,
    );
    expect(await place.refusal()).toEqual(refused);
    expect(await place.refusal({ PORT: PORT!, ADMIN_PORT: ADMIN_PORT!, PORTAL_PORT: PORTAL_PORT! })).toEqual(
      refused,
    );
    expect(contents()).toEqual(before);
    const order = await placeOrder(newest().api, { package_id: 'pkg_fr_1gb_7d' });
    await eventually('it prints the webhook', () => running.stdout.includes(order['id'] as string));
  });

  it('issues a new key when the stored one was revoked', async () => {
    const revoked = newest();
    const [, token] = /^ADMIN_TOKENS=portal:(\w+)$/m.exec(
      readFileSync(path.join(place.dataDir, 'secrets.env'), 'utf8'),
    )!;
    const admin = new HttpClient(`http://127.0.0.1:${place.adminPort}`, token!);
    const { partner_id: id, key_id: keyId } = (await revoked.api.get('/v1/me')).body.data;
    await admin.post(`/internal/v1/partners/${id}/api-keys/${keyId}/revoke`);
    await interrupt();
    await start();
    expect(newest().key).not.toBe(revoked.key);
    expect(await statusOf(newest())).toBe(200);
  });

  it('survives SIGKILL of everything: data and keys remain, and an order accepted just before is issued once', async () => {
    const { key } = newest();
    const { id } = await placeOrder(newest().api, { package_id: 'pkg_fr_1gb_7d', quantity: 2 });
    await place.killEverything();
    console.log(`start after SIGKILL: ${Math.round(await start())} ms`);
    expect((await newest().api.get(`/v1/orders/${firstOrderId}`)).body.data.status).toBe('issued');
    expect(newest().key).toBe(key);
    // The work of a dead worker waits until its lease expires (D1).
    await eventually('one simulated wholesaler is left', () => place.companions().length === 1);
    const order = await orderEnded(newest().api, id as string, 30_000);
    expect(order).toMatchObject({ status: 'issued', quantity_issued: 2 });
    expect(order['esims']).toHaveLength(2);
    const events = (await newest().api.get('/v1/events?type=order.issued')).body.data as {
      data: { order_id: string };
    }[];
    expect(events.filter((event) => event.data.order_id === id)).toHaveLength(1);
  });

  it('exits with a message when its PostgreSQL is killed, and starts again with its data', async () => {
    await place.killPostgres();
    expect(await running.exited()).toBe(1);
    expect(running.stderr).toMatch(/PostgreSQL stopped/);
    await start();
    expect(await statusOf(newest())).toBe(200);
  });

  it('survives SIGKILL of Node.js alone: the next start adopts or replaces the orphaned PostgreSQL', async () => {
    // A stale marker file has no effect, and neither does one with the pid of another process.
    const mark = path.join(place.dataDir, 'running.json');
    const said = readFileSync(mark, 'utf8');
    await running.kill();
    expect(existsSync(mark)).toBe(true);
    writeFileSync(mark, JSON.stringify({ ...JSON.parse(said), pid: process.pid }));
    await start();
    expect((await newest().api.get(`/v1/orders/${firstOrderId}`)).body.data.status).toBe('issued');
    expect((await place.refusal())[0]).toContain(
      `already running here, at http://localhost:${place.port} (process ${running.pid})`,
    );
    await interrupt();
    expect(existsSync(mark)).toBe(false);
    await eventually('no PostgreSQL is left', async () => (await place.postgresPids()).length === 0);
    console.log(`stops: ${stopTimes.join(', ')} ms`);
    expect(Math.min(...stopTimes)).toBeLessThan(STOP_MS);
  });
});
