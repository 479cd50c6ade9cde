import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { startTestService, type TestService, PATIENCE_MS } from '../harness/index.js';
import { runProgram } from './cli-process.js';

const NPM_MS = PATIENCE_MS;
const MOST_KILOBYTES = 60;

let service: TestService;
let folder: string;

beforeAll(async () => {
  service = await startTestService();
  folder = mkdtempSync(path.join(tmpdir(), 'esim-package-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/** Packs what the tests' set-up compiled; to compile here would change the program under other tests. */
function pack(workspace: string): Packed {
  const output = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: path.join(PROJECT_ROOT, workspace),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: NPM_MS,
  });
  const [packed] = JSON.parse(output.toString()) as [Packed];
  return packed;
}

it.each(['sdk', 'cli'])('has nothing in its archive that publint finds: %s', async (workspace) => {
  const bytes = readFileSync(path.join(folder, pack(workspace).filename));
  const { messages } = await publint({ pack: { tarball: new Uint8Array(bytes).buffer }, strict: true });
  expect(messages).toEqual([]);
});

it('is installed in an empty folder with the package that it stands on, and runs there', async () => {
  const client = pack('sdk');
  const packed = pack('cli');
  expect(packed.files.map((file) => file.path)).toEqual(
    expect.arrayContaining(['README.md', 'package.json', 'dist/main.js']),
  );
  expect(packed.files.filter(({ path: file }) => /^src|\.ts$|\.built$/.test(file))).toEqual([]);
  expect(packed.size).toBeLessThan(MOST_KILOBYTES * 1_000);
  const home = path.join(folder, 'project');
  execFileSync('mkdir', [home]);
  writeFileSync(path.join(home, 'package.json'), '{ "private": true }');
  execFileSync(
    'npm',
    [
      'install',
      '--offline',
      '--no-audit',
      '--no-fund',
      ...[client, packed].map(({ filename }) => path.join(folder, filename)),
    ],
    {
      cwd: home,
      stdio: 'pipe',
      timeout: NPM_MS,
    },
  );
  const partner = await service.createPartner();
  const env = {
    HOME: home,
    PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`,
    ESIM_API_KEY: partner.sandboxKey,
    ESIM_BASE_URL: service.process.api?.url ?? '',
  };
  const esim = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram(path.join(home, 'node_modules/.bin/esim'), args, { env, cwd: home });
  expect(await esim('--version')).toMatchObject({ code: 0, stdout: '0.1.0\n' });
  expect(await esim('orders', 'place', '-p', 'pkg_fr_1gb_7d', '--wait')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('issued'),
  });
}, 300_000);
