import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { publint } from 'publint';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newSigningSecret, signWebhook } from '../../src/webhooks/signature.js';
import { Page } from '../docs/page.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { freePort } from '../../chaos/free-port.js';
import {
  eventually,
  startTestService,
  type TestPartner,
  type TestService,
  PATIENCE_MS,
} from '../harness/index.js';

const PROGRAM_MS = PATIENCE_MS;
/** Compressed size limit for a browser or a worker. */
const MAX_BYTES = 10_240;
const MAX_CLI_BYTES = 60_000;
const CONTINUED = '// continued\n';

interface Program {
  readonly heading: string;
  readonly language: string;
  readonly code: string;
}

/** All code blocks of the page in order. A `continued` block belongs to the previous one. */
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
let sdk: Packed;
const started: ChildProcess[] = [];
beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  folder = mkdtempSync(path.join(tmpdir(), 'esim-readme-'));
  sdk = pack('sdk');
  home = path.join(folder, 'project');
  mkdirSync(home);
  writeFileSync(path.join(home, 'package.json'), '{ "private": true, "type": "module" }');
  npm(home, 'install', '--offline', '--no-audit', '--no-fund', sdk.archive);
  for (const [nth, { language, code }] of PROGRAMS.entries())
    writeFileSync(path.join(home, `${nth}.${language}`), code);
}, 300_000);
afterAll(async () => {
  for (const child of started) child.kill();
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});

interface Packed {
  readonly archive: string;
  readonly size: number;
  readonly files: readonly string[];
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROGRAM_MS,
  }).toString();
}

/** Packs the output of the global setup. Compiling here would replace files that other tests are using. */
function pack(workspace: string): Packed {
  const options = ['--json', '--ignore-scripts', '--pack-destination', folder];
  const [{ filename, size, files }] = JSON.parse(
    npm(path.join(PROJECT_ROOT, workspace), 'pack', ...options),
  ) as [{ filename: string; size: number; files: { path: string }[] }];
  return { archive: path.join(folder, filename), size, files: files.map((file) => file.path) };
}

/** Diagnostics of the strict compiler for programs in the project. */
function compile(files: readonly string[]): string {
  const tsc = path.join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc');
  const types = path.join(PROJECT_ROOT, 'node_modules/@types');
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
  const system = ['--module', 'nodenext', '--target', 'es2024', '--types', 'node', '--typeRoots', types];
  try {
    return execFileSync(process.execPath, [tsc, ...options, ...system, ...files], { cwd: home }).toString();
  } catch (error) {
    return (error as { stdout: Buffer }).stdout.toString();
  }
}

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

/**
 * Asynchronous, because the service runs in this process.
 * @throws Error with its output when it fails
 */
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

/** Starts the server of the page with this secret. */
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

/** Waits until no order is open and the eSIM of a purchase above was activated. */
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
    // One event per order, plus one of the top-up, and two of the activation: the status, and the profile.
    return data.length === orders.length + 3 && data;
  });
}

interface OrderOfPage {
  readonly reference: string | null;
  readonly status: string;
  readonly esims: readonly { readonly esim_id: string }[];
}

describe('each example of the README, in order', () => {
  it('has a test here', () => {
    expect(PROGRAMS.map(({ heading }) => heading)).toEqual([
      ORDER,
      ERRORS,
      BUY_ONCE,
      WEBHOOKS,
      WEBHOOKS,
      EVENTS,
    ]);
  });

  it('orders and lists in plain JavaScript', async () => {
    const output = await run(fileOf(ORDER));
    expect(output).toMatch(/^issued ord_\w+ LPA:1\$.+\n1 issued\n$/);
  }, 300_000);

  it('distinguishes refusals', async () => {
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

  it('buys once after the order of the quick start, and tops up, and buys nothing when run again', async () => {
    // A reader of the guides has already placed this order.
    const body = { package_id: 'pkg_fr_1gb_7d', reference: 'booking-4711' };
    expect((await partner.sandbox.post('/v1/orders', body)).status).toBe(202);
    const first = await run(fileOf(BUY_ONCE));
    expect(first).toMatch(/^issued ord_\w+\ncompleted top_\w+\n$/);
    expect(await run(fileOf(BUY_ONCE))).toBe(first);
  }, 300_000);

  it('accepts signed webhooks, returns 401 to all others, and reports a missing secret', async () => {
    const { body } = await partner.sandbox.get('/v1/events');
    const [event] = (body as { data: { id: string }[] }).data;
    const receiver = await startReceiver(secret);
    expect(await receiver.post(signed(JSON.stringify(event)))).toBe(204);
    expect(readFileSync(path.join(home, 'known-events'), 'utf8')).toBe(`${event!.id}\n`);
    expect(await receiver.post(signed(JSON.stringify(event), [newSigningSecret()]))).toBe(401);
    await eventually('the receiver says why', () => receiver.said() === 'no_match\n');
    const forgetful = await startReceiver('');
    expect(await forgetful.post(signed(JSON.stringify(event)))).toBe(500);
    const words = 'check that ESIM_WEBHOOK_SECRET is set';
    await eventually('the receiver says what is missing', () => forgetful.said().includes(words));
    const program = `import { receive } from './${fileOf(WEBHOOKS, 1)}';
      process.env['ESIM_WEBHOOK_SECRET'] = ${JSON.stringify(secret)};
      for (const webhook of ${JSON.stringify([signed(JSON.stringify(event)), signed('{}', [newSigningSecret()])])})
        console.log((await receive(new Request('http://shop.example', { method: 'POST', ...webhook }))).status);`;
    expect(await runText('receive.ts', program)).toBe('204\n401\n');
  }, 300_000);

  it('finds the events that no webhook delivered, and ends its stream after a time', async () => {
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

describe('the package', () => {
  it.each(['sdk', 'cli'])(
    'contains the compiled program and no source, and passes publint: %s',
    async (workspace) => {
      const { archive, files, size } = workspace === 'sdk' ? sdk : pack(workspace);
      const program = workspace === 'sdk' ? ['dist/index.js', 'dist/index.d.ts'] : ['dist/main.js'];
      expect(files).toEqual(expect.arrayContaining(['README.md', 'package.json', ...program]));
      expect(files.filter((file) => /^src|\.built$|\.map$|(?<!\.d)\.ts$/.test(file))).toEqual([]);
      if (workspace === 'cli') expect(size).toBeLessThan(MAX_CLI_BYTES);
      const tarball = new Uint8Array(readFileSync(archive)).buffer;
      expect((await publint({ pack: { tarball }, strict: true })).messages).toEqual([]);
    },
  );

  it('types the codes of every operation, and compiles with the examples under strict settings', () => {
    const { paths } = JSON.parse(
      readFileSync(path.join(PROJECT_ROOT, 'docs/openapi/partner.json'), 'utf8'),
    ) as { paths: Record<string, Record<string, { operationId?: string }>> };
    const operations = Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ operationId }) => operationId ?? []),
    );
    expect(operations.length).toBeGreaterThan(20);
    const program = [
      `import { type CodesOf, isApiError } from '@partner-esim/sdk';`,
      `type Same<A, B> = [A, B] extends [B, A] ? true : never;`,
      `export const all: Same<keyof CodesOf, ${operations.map((id) => `'${id}'`).join(' | ')}> = true;`,
      // The type is neither `never` nor `any`. It includes general codes and excludes codes that only purchases have.
      ...operations.map(
        (id) => `export const ${id}Codes: CodesOf['${id}'][] = ['unauthorized', 'rate_limited'];`,
      ),
      `// @ts-expect-error no purchase`,
      `export const foreign: CodesOf['getMe'] = 'insufficient_balance';`,
      `export const money: CodesOf['placeOrder'] = 'insufficient_balance';`,
      `export function sort(error: unknown): string {`,
      `  // @ts-expect-error codes are compared, not believed`,
      `  if (isApiError<CodesOf['placeOrder']>(error)) return 'believed';`,
      `  if (isApiError(error, 'price_changed')) return error.code satisfies 'price_changed';`,
      `  return isApiError(error) ? error.code : '';`,
      `}`,
    ];
    writeFileSync(path.join(home, 'codes.ts'), program.join('\n'));
    // A JavaScript program is also valid TypeScript.
    const examples = PROGRAMS.map(({ code }, nth) => {
      writeFileSync(path.join(home, `compiled-${nth}.ts`), code);
      return `compiled-${nth}.ts`;
    });
    expect(compile(['codes.ts', ...examples])).toBe('');
  }, 300_000);

  it(`weighs at most ${MAX_BYTES} bytes, bundled and compressed`, async () => {
    const entry = path.join(PROJECT_ROOT, 'sdk/dist/index.js');
    const output = await build({
      configFile: false,
      logLevel: 'silent',
      build: { write: false, minify: true, lib: { entry, formats: ['es'] } },
    });
    const [bundle] = [output].flat() as { output: { code?: string }[] }[];
    const code = bundle!.output.map((chunk) => chunk.code ?? '').join('');
    const bytes = gzipSync(code, { level: 9 }).length;
    console.log(`the SDK: ${bytes} bytes`);
    expect(code).not.toMatch(/node:|require\(/);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
  });
});
