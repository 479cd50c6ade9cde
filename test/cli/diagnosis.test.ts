import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestService } from '../harness/index.js';
import { CliUser, jsonLines } from './cli-process.js';

let service: TestService;
let user: CliUser;

beforeAll(async () => {
  service = await startTestService();
  const { sandboxKey } = await service.createPartner('Test Travel');
  user = new CliUser({ ESIM_API_KEY: sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
});
afterAll(async () => {
  user.remove();
  await service.stop();
});

describe('esim verify', () => {
  const secret = `whsec_${'aB3'.repeat(12)}`;
  const body = '{"id":"evt_1","data":{"n":1}}';
  const now = 1_795_080_600;
  const header = (signed: string, at = now): string =>
    `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${signed}`).digest('hex')}`;

  it.each([
    ['a right one', { header: header(body), body }, 'valid', 0],
    ['one that is too old', { header: header(body, now - 301), body }, 'timestamp_too_old', 1],
    ['one from the future', { header: header(body, now + 301), body }, 'timestamp_in_future', 1],
    [
      'a body that was written again',
      { header: header(body), body: JSON.stringify(JSON.parse(body), null, 2) },
      'body_was_parsed',
      1,
    ],
    ['a line end too many', { header: header(body), body: `${body}\n` }, 'newline_added', 1],
    ['a line end too few', { header: header(`${body}\n`), body }, 'newline_removed', 1],
    ['another body', { header: header('{}'), body }, 'no_match', 1],
    ['no header', { header: 'hello', body }, 'malformed_header', 1],
    [
      'a secret without its prefix',
      { header: header(body), body, secret: secret.slice(6) },
      'secret_without_prefix',
      1,
    ],
  ] as const)('names %s', async (_what, given, reason, code) => {
    const used = 'secret' in given ? given.secret : secret;
    const file = path.join(user.home, 'secret');
    writeFileSync(file, `${used}\n`);
    const args = ['verify', '--header', given.header, '--secret-file', file, '--at', String(now), '--json'];
    const finished = await user.run(args, { stdin: given.body });
    expect(jsonLines(finished.stdout)).toEqual([
      { valid: code === 0, reason, explanation: expect.any(String) },
    ]);
    expect(finished.code).toBe(code);
    expect(finished.stdout + finished.stderr).not.toContain(used);
  });
});

describe('esim doctor', () => {
  it('finds the way to the API, and names what is in it', async () => {
    const well = jsonLines((await user.run(['doctor', '--json'])).stdout);
    expect(well.map(({ check, ok }) => [check, ok])).toEqual([
      ['node', true],
      ['name', true],
      ['tls', true],
      ['clock', true],
      ['key', true],
    ]);
    const ill = await user.run([
      'doctor',
      '--base-url',
      'http://127.0.0.1:1',
      '--forward-to',
      '127.0.0.1:1',
      '--json',
    ]);
    expect(ill.code).toBe(1);
    const bad = jsonLines(ill.stdout).filter(({ ok }) => ok === false);
    expect(bad.map(({ check }) => check)).toEqual(['clock', 'key', 'local server']);
  });
});
