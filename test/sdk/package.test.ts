import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { startTestService, type TestService } from '../harness/index.js';
import { Page } from '../docs/page.js';

const NPM_MS = 120_000;
/** Of all that a browser or a worker would load, compressed. */
const MOST_BYTES = 10_240;

let service: TestService;
let folder: string;
let archive: string;

beforeAll(async () => {
  service = await startTestService();
  folder = mkdtempSync(path.join(tmpdir(), 'esim-sdk-'));
  // The tests' set-up has compiled it: to compile here would change the program under other tests.
  const packed = npm(
    path.join(PROJECT_ROOT, 'sdk'),
    'pack',
    '--json',
    '--ignore-scripts',
    '--pack-destination',
    folder,
  );
  const [{ filename, files }] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  expect(files.map((file) => file.path)).toEqual(
    expect.arrayContaining(['README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts']),
  );
  expect(files.filter((file) => /^src|\.built$|\.map$/.test(file.path))).toEqual([]);
  archive = path.join(folder, filename);
}, 300_000);
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: NPM_MS }).toString();
}

/** An empty project with the package in it. */
function projectWithSdk(name: string): string {
  const home = path.join(folder, name);
  mkdirSync(home);
  writeFileSync(path.join(home, 'package.json'), '{ "private": true, "type": "module" }');
  npm(home, 'install', '--offline', '--no-audit', '--no-fund', archive);
  return home;
}

/** What the strict compiler says of programs in this project. */
function compile(home: string, files: readonly string[]): string {
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

async function environment(): Promise<Record<string, string>> {
  const partner = await service.createPartner();
  return {
    PATH: process.env['PATH'] ?? '',
    ESIM_API_KEY: partner.sandboxKey,
    ESIM_BASE_URL: service.process.api!.url,
  };
}

describe('the package', () => {
  it('runs in an empty project of plain JavaScript, as its README says', async () => {
    const home = projectWithSdk('javascript');
    const example = new Page('sdk/README.md').code('## Order', 'js');
    writeFileSync(path.join(home, 'order.js'), example);
    const env = await environment();
    // Not in one turn: the service answers in this very process.
    const run = promisify(execFile);
    const { stdout: output } = await run(process.execPath, ['order.js'], { cwd: home, env, timeout: NPM_MS });
    expect(output).toMatch(/^issued ord_\w+ LPA:1\$/);
  }, 300_000);

  it('compiles in a project of strict TypeScript, every example of its README', () => {
    const home = projectWithSdk('typescript');
    const page = new Page('sdk/README.md');
    const examples = [
      '## Order',
      '## Buy once, even if your process dies',
      '## Webhooks',
      '## Events',
      '## Errors',
    ];
    for (const [nth, heading] of examples.entries())
      writeFileSync(path.join(home, `example-${nth}.ts`), page.code(heading, nth === 0 ? 'js' : 'ts'));
    const files = examples.map((_heading, nth) => `example-${nth}.ts`);
    expect(compile(home, files)).toBe('');
  }, 300_000);

  it('knows the codes of every operation of the document, and takes no code on trust', () => {
    const home = projectWithSdk('codes');
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
      // Neither never nor any code: what everything can answer is in it, what only a purchase can is not.
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
    expect(compile(home, ['codes.ts'])).toBe('');
  }, 300_000);

  it(`weighs at most ${MOST_BYTES} bytes, bundled and compressed`, async () => {
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
    expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
  }, 120_000);
});
