import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../cli/cli-process.js';
import { NodeChild, PROJECT_ROOT } from '../harness/child-process.js';
import { freePort } from '../../chaos/free-port.js';
import {
  ADMIN_TOKEN,
  eventually,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { Page } from './page.js';

const quickStart = new Page('docs/guides/quick-start.md');
const webhooks = new Page('docs/webhooks.md');
const ASK = '## 1. Check your key';
const CHOOSE = '## 2. Choose a package';
const ORDER = '## 3. Order';
const READ = '## 4. Read the eSIM';
const RECEIVE = '## 5. Receive webhooks';
const TOP_UP = '## 6. Top up';
/** Several starts of Node.js while other tests keep the machine busy. */
const TEST_MS = 240_000;

let service: TestService;
let partner: TestPartner;
let folder: string;
let port: number;
/** Processes that keep running. */
const started: NodeChild[] = [];

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  folder = mkdtempSync(path.join(tmpdir(), 'esim-quick-start-'));
  port = await freePort();
  mkdirSync(path.join(folder, 'home'));
  copyFileSync(
    path.join(PROJECT_ROOT, 'docs/guides/verifiers/verify-webhook-signature.ts'),
    path.join(folder, 'verify-webhook-signature.ts'),
  );
  writeFileSync(path.join(folder, 'server.ts'), here(quickStart.code(RECEIVE, 'typescript')));
  await install();
}, TEST_MS);
afterAll(async () => {
  await Promise.all(started.map((child) => child.kill()));
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});

/** Replaces the page's URLs and paths with those of this test. */
function here(text: string): string {
  return text
    .replaceAll('http://127.0.0.1:3000', service.process.api?.url ?? '')
    .replaceAll('http://localhost:3001', service.process.admin?.url ?? '')
    .replaceAll('4000', String(port))
    .replaceAll('/tmp/packs', path.join(folder, 'packs'));
}

/** The environment of a new terminal. npm is offline and isolated from this machine's packages. */
function terminal(): Record<string, string> {
  return {
    HOME: path.join(folder, 'home'),
    PATH: [path.join(folder, 'prefix/bin'), path.dirname(process.execPath), process.env['PATH']].join(':'),
    npm_config_prefix: path.join(folder, 'prefix'),
    npm_config_offline: 'true',
    // The global setup has built both packages. Building here would replace files that other tests are using.
    npm_config_ignore_scripts: 'true',
  };
}

/** The variables that the page exports in its first terminal. */
function exported(): Record<string, string> {
  return { ...terminal(), ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' };
}

/** Pastes a block of a page into a shell. */
async function paste(block: string, env = exported(), cwd = folder): Promise<string> {
  const { stdout, stderr, code } = await runProgram('bash', ['-ec', here(block)], { env, cwd });
  expect(code, stderr).toBe(0);
  return stdout;
}

/** Packs the packages in the repository and installs them, using the lines of the page. */
async function install(): Promise<void> {
  const block = quickStart.code(RECEIVE, 'bash');
  expect(block).toContain('npm install --global');
  await paste(block, terminal(), PROJECT_ROOT);
}

/** Starts the installed program in a process that runs until it is stopped. */
function launchEsim(line: string): NodeChild {
  const [program, ...args] = here(line).trim().split(' ');
  expect(program).toBe('esim');
  const main = realpathSync(path.join(folder, 'prefix/bin/esim'));
  expect(main.startsWith(folder)).toBe(true);
  const child = NodeChild.launch({ args: [main, ...args], env: terminal() });
  started.push(child);
  return child;
}

function launchServer(env: Readonly<Record<string, string>>): NodeChild {
  const server = NodeChild.launch({ args: ['--no-warnings', path.join(folder, 'server.ts')], env });
  started.push(server);
  return server;
}

async function startServer(secret: string): Promise<NodeChild> {
  const server = launchServer({ ESIM_WEBHOOK_SECRET: secret });
  await eventually('the server waits', () => server.stdout.includes('waiting'));
  return server;
}

/** Splits the output of `curl -i` into head and body. */
function parted(printed: string): { head: string; body: { data: Record<string, unknown> } } {
  const [head = '', body = ''] = printed.split('\r\n\r\n');
  return { head, body: JSON.parse(body) as { data: Record<string, unknown> } };
}

describe('the quick start, followed from an empty folder', () => {
  let esimId: string;
  let booking: string;

  it('identifies the key, using the variable names that the page exports', async () => {
    const [names = '', ask = ''] = quickStart.codes(ASK, 'bash');
    const block = `${names.replace('svc_sk_test_…', partner.sandboxKey)}${ask}`;
    expect(JSON.parse(await paste(block, terminal()))).toMatchObject({
      data: { mode: 'sandbox', partner_id: partner.id },
    });
  });

  it('finds the package to order, and prints what the page shows', async () => {
    const shown = quickStart.code(CHOOSE, 'text');
    expect(await paste(quickStart.code(CHOOSE, 'bash'))).toBe(shown);
    expect(quickStart.codes(ORDER, 'bash')[1]).toContain(/"id":("\w+")/.exec(shown)![1]);
  });

  it('places the order once, and marks the second call as a replay', async () => {
    const [name = '', order = ''] = quickStart.codes(ORDER, 'bash');
    booking = (await paste(`${name}printf '%s' "$BOOKING"`)).trim();
    const first = parted(await paste(order, withBooking()));
    const second = parted(await paste(order, withBooking()));
    expect(first.head).toMatch(/^HTTP\/1.1 202 /);
    expect(first.head).not.toMatch(/idempotent-replayed/i);
    expect(second.head).toMatch(/^idempotent-replayed: true$/im);
    expect(first.body).toMatchObject({ data: { status: 'pending', reference: booking } });
    expect(second.body).toEqual(first.body);
  });

  it('waits for the order, and reads its eSIM and both QR codes', async () => {
    const [order = '', esim = '', picture = ''] = quickStart.codes(READ, 'bash');
    const shown = JSON.parse(await paste(order, withBooking())) as { data: { id: string } };
    expect(shown).toMatchObject({ data: { status: 'issued', reference: booking } });
    const withOrder = { ...withBooking(), ORDER_ID: shown.data.id };
    const printed = await paste(`${esim}printf '\\n%s' "$ESIM_ID"`, withOrder);
    const [body = '', id = ''] = printed.split('\n');
    expect(JSON.parse(body)).toMatchObject({
      data: { activation_code: expect.stringMatching(/^LPA:1\$/), install: { ios_url: expect.any(String) } },
    });
    esimId = id;
    expect(JSON.parse(await paste(picture, withEsim()))).toMatchObject({
      data: { svg: expect.stringMatching(/^<svg /), png_base64: expect.stringMatching(/^iVBORw0KGgo/) },
    });
  });

  it('tops the eSIM up with one of its listed packages, and waits for the event', async () => {
    const [packages = '', buy = '', wait = ''] = quickStart.codes(TOP_UP, 'bash');
    const packageId = /"package_id":"(\w+)"/.exec(buy)![1];
    expect(await paste(packages, withEsim())).toContain(`"id":"${packageId}"`);
    const { head, body } = parted(await paste(buy, withEsim()));
    expect(head).toMatch(/^HTTP\/1.1 202 /);
    expect(JSON.parse(await paste(wait, withEsim()))).toMatchObject({
      data: [{ type: 'order.topup.completed', data: { topup_id: body.data['id'], esim_id: esimId } }],
    });
  });

  function withBooking(): Record<string, string> {
    return { ...exported(), BOOKING: booking };
  }

  function withEsim(): Record<string, string> {
    return { ...withBooking(), ESIM_ID: esimId };
  }
});

describe('the server of the quick start', () => {
  const [, login = '', listen = '', trigger = '', doctor = ''] = quickStart.codes(RECEIVE, 'bash');

  it('does not start without a secret, and names the missing variable', async () => {
    const server = launchServer({});
    expect(await server.exited()).toBe(1);
    expect(server.stderr).toBe('ESIM_WEBHOOK_SECRET is not set\n');
  });

  it(
    'receives a verified event from the installed CLI, and logs what it refuses',
    async () => {
      const lines = login.trim().split('\n');
      expect(lines.pop()).toBe('node server.ts');
      const printed = await paste(`${lines.join('\n')}\nprintf '%s' "$ESIM_WEBHOOK_SECRET"`);
      const server = await startServer(/whsec_\w+/.exec(printed)![0]);
      const listener = launchEsim(listen);
      await eventually('listen is ready', () => listener.stdout.includes('ready'));
      await paste(trigger, terminal());
      await eventually('the server verified it', () => server.stdout.includes('verified order.issued {'));
      const answer = await runProgram('bash', ['-ec', here(doctor)], { env: terminal(), cwd: folder });
      expect(answer, answer.stdout).toMatchObject({ code: 0, stdout: expect.not.stringContaining('BAD') });
      const unsigned = await fetch(`http://localhost:${port}/webhooks`, { method: 'POST', body: '{}' });
      expect(unsigned.status).toBe(401);
      await eventually('it says so', () => server.stdout.includes('refused: signature\n'));
      await Promise.all([server.kill(), listener.kill()]);
    },
    TEST_MS,
  );

  it(
    'receives a verified webhook without the CLI, registered with the call on the page',
    async () => {
      mkdirSync(path.join(folder, '.data'));
      writeFileSync(path.join(folder, '.data/secrets.env'), `ADMIN_TOKENS=portal:${ADMIN_TOKEN}\n`);
      const block = webhooks.code('### On your own machine', 'bash');
      const { data } = JSON.parse(await paste(block)) as { data: { secret: string } };
      const server = await startServer(data.secret);
      const order = { package_id: 'pkg_fr_1gb_7d', reference: 'booking-4712' };
      expect((await partner.sandbox.post('/v1/orders', order)).status).toBe(202);
      await eventually('the webhook is verified', () =>
        /verified order\.issued .*"booking-4712"/.test(server.stdout),
      );
      await server.kill();
    },
    TEST_MS,
  );
});
