import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newSigningSecret, standardHeaders } from '../../src/webhooks/signature.js';
import { CliUser, type Finished, jsonLines } from './cli-process.js';

const body = '{"id":"evt_1","data":{"n":1}}';
const now = 1_795_080_600;

let user: CliUser;

beforeAll(() => {
  user = new CliUser();
});
afterAll(() => user.remove());

/** Runs `esim verify` with a body and a secret from files. */
function verify(
  args: readonly string[],
  secret: string,
  received = body,
  env: Record<string, string> = {},
): Promise<Finished> {
  const [bodyFile, secretFile] = ['body', 'secret'].map((name) => path.join(user.home, name)) as [
    string,
    string,
  ];
  writeFileSync(bodyFile, received);
  writeFileSync(secretFile, secret);
  const from = 'ESIM_WEBHOOK_SECRET' in env ? [] : ['--secret-file', secretFile];
  return user.run(['verify', '--body', bodyFile, ...from, '--at', String(now), ...args], { env });
}

describe('esim verify', () => {
  const secret = `whsec_${'aB3'.repeat(12)}`;
  const header = (signed: string, at = now): string =>
    `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${signed}`).digest('hex')}`;

  it.each([
    ['a valid signature', { header: header(body), body }, 'valid', 0],
    ['an old signature', { header: header(body, now - 301), body }, 'timestamp_too_old', 1],
    ['a signature from the future', { header: header(body, now + 301), body }, 'timestamp_in_future', 1],
    [
      'a reserialized body',
      { header: header(body), body: JSON.stringify(JSON.parse(body), null, 2) },
      'body_was_parsed',
      1,
    ],
    ['an extra newline', { header: header(body), body: `${body}\n` }, 'newline_added', 1],
    ['a missing newline', { header: header(`${body}\n`), body }, 'newline_removed', 1],
    ['another body', { header: header('{}'), body }, 'no_match', 1],
    ['no header', { header: 'hello', body }, 'malformed_header', 1],
    [
      'a secret without its prefix',
      { header: header(body), body, secret: secret.slice(6) },
      'secret_without_prefix',
      1,
    ],
  ] as const)('detects %s', async (_what, given, reason, code) => {
    const used = 'secret' in given ? given.secret : secret;
    const finished = await verify(['--header', given.header, '--json'], `${used}\n`, given.body);
    expect(jsonLines(finished.stdout)).toEqual([
      { valid: code === 0, reason, explanation: expect.any(String) },
    ]);
    expect(finished.code).toBe(code);
    expect(finished.stdout + finished.stderr).not.toContain(used);
  });

  it.each([
    ['too old', now - 345, /^correct signature, too old {2}It is 345 s old.*--at <unix seconds>\.\n$/],
    ['from the future', now + 400, /^correct signature, from the future {2}Its time is 400 s ahead .*\n$/],
    ['one second old', now - 1, /^valid {2}The signature is correct and 1 second old\.\n$/],
  ] as const)('prints a readable result for a correct signature that is %s', async (_what, at, says) => {
    expect((await verify(['--header', header(body, at)], secret)).stdout).toMatch(says);
  });

  it.each([
    ['in a file with a Windows line break', `${secret}\r\n`, false],
    ['in a file with blank lines', `\n ${secret}\n\n`, true],
    ['in a file with a byte order mark', `\uFEFF${secret}`, true],
  ])('trims the secret %s', async (_what, content, isTold) => {
    const args = ['--header', header(body)];
    const finished = await verify(args, content);
    expect(finished).toMatchObject({ code: 0, stdout: expect.stringMatching(/^valid /) });
    expect(finished.stdout.includes('Your server must trim it too')).toBe(isTold);
    const env = { ESIM_WEBHOOK_SECRET: content };
    expect(await verify(args, '', body, env)).toMatchObject({ code: 0 });
  });
});

describe('esim verify with Standard Webhooks', () => {
  const secret = newSigningSecret();
  /** Headers as the service signs them. */
  const signed = (text = body, secrets = [secret], at = now): string[] =>
    Object.entries(standardHeaders('evt_1', { timestampSeconds: at, body: text, secrets })).flatMap(
      ([name, value]) => [`--${name}`, value],
    );
  it.each([
    ['a valid signature', signed(), 'valid'],
    ['a signature during a rotation', signed(body, [newSigningSecret(), secret]), 'valid'],
    ['an old signature', signed(body, [secret], now - 301), 'timestamp_too_old'],
    ['a signature from the future', signed(body, [secret], now + 301), 'timestamp_in_future'],
    ['another secret', signed(body, [newSigningSecret()]), 'no_match'],
    ['a missing newline', signed(`${body}\n`), 'newline_removed'],
    ['another id', ['--webhook-id', 'evt_2', ...signed().slice(2)], 'no_match'],
    ['a malformed signature', [...signed().slice(0, 4), '--webhook-signature', 'hello'], 'malformed_header'],
    [
      'a malformed timestamp',
      [...signed().slice(0, 2), '--webhook-timestamp', 'x', ...signed().slice(4)],
      'malformed_header',
    ],
  ])('detects %s', async (_what, args, reason) => {
    const finished = await verify([...args, '--json'], secret);
    expect(jsonLines(finished.stdout)).toEqual([
      { valid: reason === 'valid', reason, explanation: expect.any(String) },
    ]);
    expect(finished.code).toBe(reason === 'valid' ? 0 : 1);
  });

  it('requires all three headers without --header, and names a missing one', async () => {
    const lacksId = await verify(signed().slice(2), secret);
    expect(lacksId).toMatchObject({ code: 2, stderr: expect.stringContaining('--webhook-id') });
    expect(await verify([...signed(), '--header', 't=1,v1=2'], secret)).toMatchObject({ code: 2 });
    expect(await verify([], secret)).toMatchObject({ code: 2, stderr: expect.stringContaining('--header') });
  });

  it('reads the body from stdin without --body', async () => {
    const env = { ESIM_WEBHOOK_SECRET: secret };
    const finished = await user.run(['verify', ...signed(), '--at', String(now)], { stdin: body, env });
    expect(finished).toMatchObject({ code: 0, stdout: expect.stringMatching(/^valid /) });
  });
});
