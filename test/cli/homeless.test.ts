import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestService } from '../harness/index.js';
import { type Finished, jsonLines, PROGRAM, runProgram } from './cli-process.js';

/** A user of a container that has neither HOME nor an entry in /etc/passwd: there os.homedir() throws. */
const HOMELESS = `--import=data:text/javascript,${encodeURIComponent(`
  import os from 'node:os';
  import { syncBuiltinESMExports } from 'node:module';
  os.homedir = () => { throw Object.assign(new Error('uv_os_homedir returned ENOENT'), { code: 'ENOENT' }); };
  syncBuiltinESMExports();
`)}`;

let service: TestService;
let key: string;

beforeAll(async () => {
  service = await startTestService();
  ({ sandboxKey: key } = await service.createPartner());
});
afterAll(() => service.stop());

/** @param home `HOME`; none when omitted */
function run(args: readonly string[], home: Record<string, string> = {}, stdin = ''): Promise<Finished> {
  const env = { ESIM_API_KEY: key, ESIM_BASE_URL: service.process.api?.url ?? '', ...home };
  return runProgram(process.execPath, [HOMELESS, PROGRAM, ...args], { env, stdin });
}

describe.each([
  ['no HOME', {}],
  ['an empty HOME', { HOME: '' }],
  ['a HOME that cannot be made', { HOME: '/dev/null/home' }],
  ['a HOME that is a file', { HOME: '/dev/null' }],
  ['a HOME below /proc', { HOME: '/proc/nowhere' }],
])('a user with %s', (_what, home) => {
  it('needs no file for calls of the API', async () => {
    for (const args of [['catalog', 'FR', '--limit', '1'], ['orders', 'list'], ['doctor'], ['logout']]) {
      const finished = await run(args, home);
      expect(finished, finished.stderr + finished.stdout).toMatchObject({ code: 0 });
    }
  });

  it('needs none for where the API is, either: it is then this machine', async () => {
    const finished = await run(['orders', 'list'], { ...home, ESIM_BASE_URL: '' });
    expect([0, 4, 5, 3]).toContain(finished.code);
    expect(finished.stderr).not.toMatch(/ENOENT|ENOTDIR|homedir/);
  });

  it('is told what to set when a command keeps a file', async () => {
    for (const [args, stdin] of [
      [['login'], key],
      [['listen', 'localhost:4000'], ''],
    ] as const) {
      const refused = await run(args, home, stdin);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/^error: .*(no home folder|cannot be written).*\nSet HOME to a folder/);
    }
  });

  it('verifies with a secret of the environment', async () => {
    const finished = await run(
      ['verify', '--header', `t=1,v1=${'0'.repeat(64)}`, '--json'],
      { ...home, ESIM_WEBHOOK_SECRET: 'whsec_of_no_endpoint\n' },
      '{}',
    );
    expect(jsonLines(finished.stdout)).toMatchObject([{ reason: 'no_match' }]);
  });
});

describe('a key of the environment', () => {
  it.each(['\n', '\r\n', ' \t'])('may have white space at its end: %j', async (end) => {
    const env = { ESIM_API_KEY: `${key}${end}`, ESIM_BASE_URL: `${service.process.api?.url ?? ''}${end}` };
    expect(await run(['orders', 'list'], env)).toMatchObject({ code: 0 });
  });
});
