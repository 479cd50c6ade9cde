import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';

// Each starts a process of its own that loads the whole service.
const folder = mkdtempSync(path.join(tmpdir(), 'esim-env-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the API with this .env: without a database it fails on its settings, and so shows which ones it read. */
function start(
  content: string | Buffer,
  env: Record<string, string> = {},
): { status: number | null; said: string } {
  const file = path.join(folder, '.env');
  writeFileSync(file, content);
  const { status, stderr } = spawnSync(process.execPath, ['scripts/start.mjs', 'api'], {
    cwd: PROJECT_ROOT,
    env: { PATH: process.env['PATH'] ?? '', ENV_FILE: file, ...env },
    encoding: 'utf8',
  });
  return { status, said: stderr };
}

describe('.env', () => {
  it('sets what is not set', () => {
    const { status, said } = start('# a comment\nexport LOG_LEVEL="shout" # or not\n\nPORT=abc\n');
    expect(status).toBe(1);
    expect(said).toMatch(/^.*LOG_LEVEL/m);
    expect(said).toMatch(/^.*PORT must/m);
  });

  it('does not change what is set already', () => {
    const { said } = start('LOG_LEVEL=shout\nPORT=abc\n', { PORT: '3000' });
    expect(said).toContain('LOG_LEVEL');
    expect(said).not.toMatch(/\bPORT\b/);
  });

  it.each([
    ['a line without =', 'PORT=3000\nLOG_LEVEL info\n', 2],
    ['a name that is none', 'PORT=3000\n\n2FAST=1\n', 3],
    ['a quote that is not closed', "PORT=3000\nADMIN_TOKENS='portal:hidden-part\nLOG_LEVEL=info\n", 2],
    ['something behind a closing quote', 'ADMIN_TOKENS="portal" hidden-part\n', 1],
  ])('is refused with %s: the line is named, its content is not', (_, content, line) => {
    const { status, said } = start(content);
    expect(status).toBe(1);
    expect(said.trim().split('\n')).toEqual([expect.stringMatching(new RegExp(`\\.env, line ${line}:`))]);
    expect(said).not.toContain('hidden-part');
  });

  it('takes a value over several lines, and one with = and # in it', () => {
    const { said } = start('NOTE="one\ntwo"\nLOG_LEVEL=a=b#c\nPORT=3000\n');
    expect(said).toContain('LOG_LEVEL');
    expect(said).not.toContain('line');
  });

  it.each([
    ['a byte order mark', '\uFEFFLOG_LEVEL=shout\nPORT=abc\n'],
    ['line ends of Windows', 'LOG_LEVEL=shout\r\nPORT=abc\r\n'],
    ['both, and export', '\uFEFFexport LOG_LEVEL=shout\r\nexport PORT=abc\r\n'],
    ['line ends of old Macs', 'LOG_LEVEL=shout\rPORT=abc\r'],
  ])('loses no variable to %s', (_, content) => {
    const { said } = start(content);
    expect(said).toMatch(/^.*LOG_LEVEL/m);
    expect(said).toMatch(/^.*PORT must/m);
  });

  it.each([
    ['UTF-16', Buffer.from('\uFEFFPORT=3000\r\n', 'utf16le')],
    ['UTF-16 of the other byte order', Buffer.from('\uFEFFPORT=3000\r\n', 'utf16le').swap16()],
    ['UTF-16 without a mark', Buffer.from('PORT=3000\r\n', 'utf16le')],
    ['Latin 1', Buffer.from('PORTAL_BRAND_NAME=Voyage d\u00E9t\u00E9\n', 'latin1')],
  ])('is refused in %s, by name', (_, content) => {
    const { status, said } = start(content);
    expect([status, said.trim()]).toEqual([
      1,
      `cannot start: ${path.join(folder, '.env')} is not UTF-8 text: save it as UTF-8, with or without a byte order mark`,
    ]);
  });

  it('is refused when it cannot be read', () => {
    const { status, said } = start('', { ENV_FILE: folder });
    expect([status, said]).toEqual([1, expect.stringContaining('EISDIR')]);
  });

  it('may be missing', () => {
    const { said } = start('', { ENV_FILE: path.join(folder, 'none') });
    expect(said).toContain('DATABASE_URL is required');
  });
});
