import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestService, type TestService } from '../harness/index.js';
import { CliUser, jsonLines } from './cli-process.js';

const user = new CliUser();
let service: TestService;
let key: string;

/** A container's user may have neither HOME nor an entry in /etc/passwd, and then os.homedir() throws. */
beforeAll(async () => {
  vi.spyOn(os, 'homedir').mockImplementation(() => {
    throw Object.assign(new Error('uv_os_homedir returned ENOENT'), { code: 'ENOENT' });
  });
  syncBuiltinESMExports();
  service = await startTestService();
  ({ sandboxKey: key } = await service.createPartner());
});
afterAll(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  user.remove();
  await service.stop();
});

const run = (args: readonly string[], home: Record<string, string>): ReturnType<CliUser['run']> =>
  user.run(args, { env: { ESIM_API_KEY: key, ESIM_BASE_URL: service.process.api?.url ?? '', ...home } });

describe.each([
  ['no HOME', ''],
  ['a HOME that cannot be created', '/dev/null/home'],
  ['a HOME that is a file', '/dev/null'],
  ['a HOME below /proc', '/proc/nowhere'],
])('a user with %s', (_what, HOME) => {
  it('can call the API without a file', async () => {
    for (const args of [['catalog', 'FR', '--limit', '1'], ['orders', 'list'], ['doctor'], ['logout']]) {
      const finished = await run(args, { HOME });
      expect(finished, finished.stderr + finished.stdout).toMatchObject({ code: 0 });
    }
    const elsewhere = await run(['orders', 'list'], { HOME, ESIM_BASE_URL: '' });
    expect([0, 4, 5, 3]).toContain(elsewhere.code);
    expect(elsewhere.stderr).not.toMatch(/ENOENT|ENOTDIR|homedir/);
  });

  it('learns what to set when a command needs to store a file', async () => {
    const refused = await run(['listen', 'localhost:4000'], { HOME });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^error: .*(no home folder|cannot be written).*\nSet HOME to a folder/);
  });

  it('can verify with a secret from the environment', async () => {
    const args = ['verify', '--header', `t=1,v1=${'0'.repeat(64)}`, '--body', '/dev/null', '--json'];
    const finished = await run(args, { HOME, ESIM_WEBHOOK_SECRET: 'whsec_of_no_endpoint\n' });
    expect(jsonLines(finished.stdout)).toMatchObject([{ reason: 'no_match' }]);
  });
});

it.each(['\n', '\r\n', ' \t'])(
  'accepts a key and a base URL from the environment that end with %j',
  async (end) => {
    const env = { ESIM_API_KEY: `${key}${end}`, ESIM_BASE_URL: `${service.process.api?.url ?? ''}${end}` };
    expect(await run(['orders', 'list'], env)).toMatchObject({ code: 0 });
  },
);
