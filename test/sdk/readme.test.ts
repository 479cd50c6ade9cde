import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newSigningSecret, signWebhook } from '../../src/webhooks/signature.js';
import { Page } from '../docs/page.js';
import { freePort } from '../harness/free-port.js';
import {
  eventually,
  startTestService,
  type TestPartner,
  type TestService,
  PATIENCE_MS,
} from '../harness/index.js';
import { compile, packSdk, projectWithSdk } from './packed-sdk.js';

const PROGRAM_MS = PATIENCE_MS;
const CONTINUED = '// continued\n';

interface Program {
  readonly heading: string;
  readonly language: string;
  readonly code: string;
}

/** Every block of the page in which there is code, in its order; one that is `continued` belongs to the one before it. */
function programsOf({ text }: Page): Program[] {
  const programs: Program[] = [];
  let heading = '';
  for (const match of text.matchAll(/^(## .+)$|^```(\w+)\n([^]*?)^```$/gm)) {
    heading = match[1] ?? heading;
    const [, , language, code] = match;
    if (language === undefined || code === undefined) continue;
    const previous = programs.at(-1);
    if (!code.startsWith(CONTINUED)) programs.push({ heading, language, code });
    else if (previous?.heading !== heading || previous.language !== language)
      throw new Error(`nothing to continue: ${code}`);
    else programs[programs.length - 1] = { ...previous, code: previous.code + code };
  }
  return programs;
}

const PROGRAMS = programsOf(new Page('sdk/README.md'));
const ORDER = '## Order';
const ERRORS = '## Errors';
const BUY_ONCE = '## Buy once, even if your process dies';
const WEBHOOKS = '## Webhooks';
const EVENTS = '## Events';

let service: TestService;
let partner: TestPartner;
let folder: string;
let home: string;
const started: ChildProcess[] = [];
beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  folder = mkdtempSync(path.join(tmpdir(), 'esim-readme-'));
  home = projectWithSdk(packSdk(folder).archive, 'project');
  for (const [nth, { language, code }] of PROGRAMS.entries())
    writeFileSync(path.join(home, `${nth}.${language}`), code);
}, 300_000);
afterAll(async () => {
  for (const child of started) child.kill();
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});

/** The file of a program below this heading. */
function fileOf(heading: string, nth = 0): string {
  const program = PROGRAMS.filter((each) => each.heading === heading)[nth];
  if (!program) throw new Error(`no program below "${heading}"`);
  return `${PROGRAMS.indexOf(program)}.${program.language}`;
}

function environment(more: Record<string, string> = {}): Record<string, string> {
  const { PATH = '' } = process.env;
  return { PATH, ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api!.url, ...more };
}

/** Not in one turn: the service answers in this very process. @throws what it printed when it ends with an error */
async function run(file: string): Promise<string> {
  const options = { cwd: home, env: environment(), timeout: PROGRAM_MS };
  return (await promisify(execFile)(process.execPath, ['--no-warnings', file], options)).stdout;
}

async function runText(name: string, code: string): Promise<string> {
  writeFileSync(path.join(home, name), code);
  return run(name);
}

const secret = newSigningSecret();
function signed(body: string, secrets = [secret]): { body: string; headers: Record<string, string> } {
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  return { body, headers: { 'x-service-signature': signWebhook({ timestampSeconds, body, secrets }) } };
}

interface Receiver {
  readonly said: () => string;
  readonly post: (webhook: { body: string; headers: Record<string, string> }) => Promise<number>;
}

/** The server of the page, with this secret. */
async function startReceiver(webhookSecret: string): Promise<Receiver> {
  const port = await freePort();
  const env = environment({ PORT: String(port), ESIM_WEBHOOK_SECRET: webhookSecret });
  const child = spawn(process.execPath, ['--no-warnings', fileOf(WEBHOOKS)], { cwd: home, env });
  started.push(child);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  return {
    said: () => said,
    post: async (webhook) =>
      (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', ...webhook })).status,
  };
}

/** When nothing is under way, and the eSIM of a purchase above was activated. */
async function eventsOfAll(): Promise<readonly { id: string }[]> {
  const orders = await eventually('every order is issued', async () => {
    const { data } = (await partner.sandbox.get('/v1/orders')).body as { data: OrderOfPage[] };
    return data.every(({ status }) => status === 'issued') && data;
  });
  const esimId = orders.find(({ reference }) => reference === 'booking-4712')!.esims[0]!.esim_id;
  expect((await partner.sandbox.post(`/v1/sandbox/esims/${esimId}/activate`)).status).toBeLessThan(300);
  return eventually('all of it is in the feed', async () => {
    const { data } = (await partner.sandbox.get('/v1/events?limit=100')).body as {
      data: { id: string; type: string }[];
    };
    // Of each order one, and those of the top-up and the activation.
    return data.length === orders.length + 2 && data;
  });
}

interface OrderOfPage {
  readonly reference: string | null;
  readonly status: string;
  readonly esims: readonly { readonly esim_id: string }[];
}

describe('each example of the README, one after the other', () => {
  it('is known here, and compiles in a project of strict TypeScript', () => {
    expect(PROGRAMS.map(({ heading }) => heading)).toEqual([
      ORDER,
      ERRORS,
      BUY_ONCE,
      WEBHOOKS,
      WEBHOOKS,
      EVENTS,
    ]);
    // A program of plain JavaScript is one of TypeScript, too.
    const files = PROGRAMS.map(({ code }, nth) => {
      writeFileSync(path.join(home, `compiled-${nth}.ts`), code);
      return `compiled-${nth}.ts`;
    });
    expect(compile(home, files)).toBe('');
  }, 300_000);

  it('orders, in plain JavaScript, and lists', async () => {
    const output = await run(fileOf(ORDER));
    expect(output).toMatch(/^issued ord_\w+ LPA:1\$.+\n1 issued\n$/);
  }, 300_000);

  it('tells refusals apart', async () => {
    const buy = (id: string): Promise<string> =>
      runText(
        `buy-${id}.ts`,
        `import { buy } from './${fileOf(ERRORS)}';\nconsole.log(await buy('${id}').catch((error) => error.message));`,
      );
    expect(await buy('pkg_fr_1gb_7d')).toMatch(/^ord_\w+\n$/);
    expect(await buy('pkg_nobody')).toMatch(
      /^404 not_found: .+ \(POST \S+\/v1\/orders with a Sandbox key, request req_\w+\)\n$/,
    );
  }, 300_000);

  it('buys once, behind the order of the quick start, and tops up; run again, it buys nothing', async () => {
    // What who follows the guides has done before.
    const body = { package_id: 'pkg_fr_1gb_7d', reference: 'booking-4711' };
    expect((await partner.sandbox.post('/v1/orders', body)).status).toBe(202);
    const first = await run(fileOf(BUY_ONCE));
    expect(first).toMatch(/^issued ord_\w+\ncompleted top_\w+\n$/);
    expect(await run(fileOf(BUY_ONCE))).toBe(first);
  }, 300_000);

  it('believes webhooks that are signed, answers 401 to others, and says when its secret is not set', async () => {
    const { body } = await partner.sandbox.get('/v1/events');
    const [event] = (body as { data: { id: string }[] }).data;
    const receiver = await startReceiver(secret);
    expect(await receiver.post(signed(JSON.stringify(event)))).toBe(204);
    expect(readFileSync(path.join(home, 'known-events'), 'utf8')).toBe(`${event!.id}\n`);
    expect(await receiver.post(signed(JSON.stringify(event), [newSigningSecret()]))).toBe(401);
    await eventually('the receiver says why', () => receiver.said() === 'no_match\n');
    const forgetful = await startReceiver('');
    expect(await forgetful.post(signed(JSON.stringify(event)))).toBe(500);
    const words = 'is ESIM_WEBHOOK_SECRET set?';
    await eventually('the receiver says what is missing', () => forgetful.said().includes(words));
    const program = `import { receive } from './${fileOf(WEBHOOKS, 1)}';
      process.env['ESIM_WEBHOOK_SECRET'] = ${JSON.stringify(secret)};
      for (const webhook of ${JSON.stringify([signed(JSON.stringify(event)), signed('{}', [newSigningSecret()])])})
        console.log((await receive(new Request('http://shop.example', { method: 'POST', ...webhook }))).status);`;
    expect(await runText('receive.ts', program)).toBe('204\n401\n');
  }, 300_000);

  it('names the events that no webhook brought, and ends its stream by the clock', async () => {
    const data = await eventsOfAll();
    const known = readFileSync(path.join(home, 'known-events'), 'utf8').trim().split('\n');
    for (const { id } of data.slice(1, -1).filter((each) => !known.includes(each.id)))
      appendFileSync(path.join(home, 'known-events'), `${id}\n`);
    const text = readFileSync(path.join(home, fileOf(EVENTS)), 'utf8');
    expect(text).toContain('AbortSignal.timeout(60_000)');
    const output = await runText('events.ts', text.replace('timeout(60_000)', 'timeout(8_000)'));
    const [counted, activated] = output.trim().split('\n');
    expect(counted).toBe(`1 of ${data.length} events had not arrived as webhooks`);
    expect(activated).toMatch(/^evt_\w+ \d{19}$/);
  }, 300_000);
});
