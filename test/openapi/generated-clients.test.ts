import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { whyMissing } from '../harness/why-missing.js';
import { GO_MAIN, PYTHON_MAIN, TYPESCRIPT_MAIN } from './client-programs.js';

/** Go compiles its standard library once, on a machine that is busy with other tests. */
const TEST_MS = 400_000;
const GENERATOR = 'openapi-generator-cli';
const missing =
  whyMissing(GENERATOR, 'version') ??
  whyMissing('python3', '-cimport pydantic, urllib3, dateutil') ??
  whyMissing('go', 'version');
if (missing) console.warn(`no client is generated from docs/openapi: ${missing}`);

const CLIENTS = ['python', 'go', 'typescript-fetch'] as const;

describe.skipIf(missing !== null)('a client that OpenAPI Generator makes with its default options', () => {
  let service: TestService;
  let partner: TestPartner;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'esim-clients-'));
    service = await startTestService();
    await generate(folder);
  }, TEST_MS);
  afterAll(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const place = (generator: (typeof CLIENTS)[number]): string => path.join(folder, generator);
  /** Runs a program for a partner that has ordered nothing yet, and expects it to order one eSIM. */
  async function expectOrder(cwd: string, file: string, ...args: readonly string[]): Promise<void> {
    partner = await service.createPartner();
    const env = { BASE_URL: service.process.api!.url, API_KEY: partner.sandboxKey };
    expect(JSON.parse(await run(cwd, env, file, ...args))).toEqual({
      accepted: [202, true],
      order: ['issued', 1, 'USD', null],
      issued_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      esim: ['issued', 1_000_000_000, null],
      events: [true],
      refusal: 'not_found',
    });
    const { body } = await partner.sandbox.get('/v1/orders');
    expect(body.data).toMatchObject([{ status: 'issued', package_id: 'pkg_fr_1gb_7d' }]);
  }

  it('places an order in Python', { timeout: TEST_MS }, async () => {
    const cwd = place('python');
    writeFileSync(path.join(cwd, 'main.py'), PYTHON_MAIN);
    await expectOrder(cwd, 'python3', 'main.py');
  });

  it('places an order in Go', { timeout: TEST_MS }, async () => {
    const cwd = place('go');
    mkdirSync(path.join(cwd, 'order'));
    writeFileSync(path.join(cwd, 'order/main.go'), GO_MAIN);
    await expectOrder(cwd, 'go', 'run', './order');
  });

  it('places an order in TypeScript', { timeout: TEST_MS }, async () => {
    const cwd = path.dirname(place('typescript-fetch'));
    const bin = path.join(PROJECT_ROOT, 'node_modules/.bin');
    writeFileSync(path.join(cwd, 'main.ts'), TYPESCRIPT_MAIN.replace("'./client'", "'./typescript-fetch'"));
    writeFileSync(path.join(cwd, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    await run(cwd, {}, path.join(bin, 'tsc'), '-p', '.');
    await run(cwd, {}, path.join(bin, 'rolldown'), 'main.ts', '--file', 'main.mjs', '--platform', 'node');
    await expectOrder(cwd, process.execPath, 'main.mjs');
  });
});

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: ['node'],
    typeRoots: [path.join(PROJECT_ROOT, 'node_modules/@types')],
  },
  files: ['main.ts'],
};

/** All clients in one start of Java, without the tests and pages of each. */
async function generate(folder: string): Promise<void> {
  const files = CLIENTS.map((generator) => {
    const file = path.join(folder, `settings-of-${generator}.json`);
    const settings = {
      generatorName: generator,
      inputSpec: path.join(PROJECT_ROOT, `docs/openapi/partner.json`),
      outputDir: path.join(folder, generator),
      globalProperties: { apiTests: 'false', modelTests: 'false', apiDocs: 'false', modelDocs: 'false' },
    };
    writeFileSync(file, JSON.stringify(settings));
    return file;
  });
  await run(folder, {}, GENERATOR, 'batch', '--fail-fast', '--threads', '2', ...files);
}

/** What a program prints. @throws Error with all that it printed */
async function run(
  cwd: string,
  env: Readonly<Record<string, string>>,
  file: string,
  ...args: readonly string[]
): Promise<string> {
  const options = {
    cwd,
    timeout: TEST_MS,
    maxBuffer: 2 ** 26,
    // A toolchain that is too old must say so, not fetch another one.
    env: { ...process.env, GOTOOLCHAIN: 'local', ...env },
  };
  return promisify(execFile)(file, args, options).then(
    ({ stdout }) => stdout,
    (error: Error & { stdout?: string; stderr?: string }) => {
      throw new Error(`${error.message}\n${error.stdout ?? ''}\n${error.stderr ?? ''}`, { cause: error });
    },
  );
}
