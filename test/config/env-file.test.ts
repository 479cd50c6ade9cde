import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';

type Environment = Record<string, string | undefined>;

const { loadEnvFile } = (await import(new URL('../../scripts/env-file.mjs', import.meta.url).href)) as {
  readonly loadEnvFile: (file: string, env: Environment) => void;
};

const folder = mkdtempSync(path.join(tmpdir(), 'esim-env-'));
const file = path.join(folder, '.env');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function loaded(content: string | Buffer, env: Environment = {}): Environment {
  writeFileSync(file, content);
  loadEnvFile(file, env);
  return env;
}

it.each([
  ['comments, quotes and export', '# a comment\nexport A="x" # or not\n\nB=y\n', { A: 'x', B: 'y' }],
  ['a multi-line value', 'A="one\ntwo"\nB=y\n', { A: 'one\ntwo', B: 'y' }],
  ['a value with = and a comment', 'A=a=b#c\nB=y\n', { A: 'a=b', B: 'y' }],
  ['a byte order mark', '\uFEFFA=x\nB=y\n', { A: 'x', B: 'y' }],
  ['Windows line endings', 'A=x\r\nB=y\r\n', { A: 'x', B: 'y' }],
  [
    'a byte order mark, Windows line endings and export',
    '\uFEFFexport A=x\r\nexport B=y\r\n',
    { A: 'x', B: 'y' },
  ],
  ['classic Mac line endings', 'A=x\rB=y\r', { A: 'x', B: 'y' }],
])('reads .env with %s', (_, content, expected) => {
  expect(loaded(content)).toEqual(expected);
});

it('keeps a variable that is set already', () => {
  expect(loaded('A=x\nB=y\n', { B: 'set' })).toEqual({ A: 'x', B: 'set' });
});

it.each([
  ['a line without =', 'A=3000\nB info\n', 2],
  ['an invalid name', 'A=3000\n\n2FAST=1\n', 3],
  ['an unclosed quote', "A=3000\nB='portal:hidden-part\nC=info\n", 2],
  ['text after a closing quote', 'A="portal" hidden-part\n', 1],
])('refuses %s with its line number and does not repeat it', (_, content, line) => {
  const load = (): Environment => loaded(content);
  expect(load).toThrow(new RegExp(`\\.env, line ${line}:`));
  expect(load).not.toThrow('hidden-part');
});

it.each([
  ['UTF-16', Buffer.from('\uFEFFA=3000\r\n', 'utf16le')],
  ['UTF-16 in the other byte order', Buffer.from('\uFEFFA=3000\r\n', 'utf16le').swap16()],
  ['UTF-16 without a byte order mark', Buffer.from('A=3000\r\n', 'utf16le')],
  ['Latin 1', Buffer.from('A=Voyage d\u00E9t\u00E9\n', 'latin1')],
])('refuses a file in %s', (_, content) => {
  expect(() => loaded(content)).toThrow(`${file} is not UTF-8 text: save it as UTF-8`);
});

it('treats a missing file as empty, and refuses an unreadable one', () => {
  const env = {};
  loadEnvFile(path.join(folder, 'none'), env);
  expect(env).toEqual({});
  expect(() => loadEnvFile(folder, env)).toThrow('EISDIR');
});

it.each([
  ['and names the invalid settings', 'LOG_LEVEL=shout\nPORT=abc\n', [/^.*LOG_LEVEL/m, /^.*PORT must/m]],
  ['and names the invalid line', 'LOG_LEVEL info\n', [/^cannot start: .*\.env, line 1:/]],
])('stops the boot %s', (_, content, expected) => {
  writeFileSync(file, content);
  const { status, stderr } = spawnSync(process.execPath, ['scripts/start.mjs', 'api'], {
    cwd: PROJECT_ROOT,
    env: { PATH: process.env['PATH'] ?? '', ENV_FILE: file },
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  for (const pattern of expected) expect(stderr).toMatch(pattern);
});
