import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { shellWord } from '../../src/embedded/banner.js';
import { openDataDirectory, withDevelopmentDefaults } from '../../src/embedded/development-settings.js';
import { pasteInto, shells } from '../harness/embedded-start.js';

const folder = mkdtempSync(path.join(tmpdir(), 'esim-settings-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function hosts(env: Record<string, string>): string[] {
  const directory = openDataDirectory({ DATA_DIR: folder });
  const config = loadConfig(withDevelopmentDefaults(env, directory, 'postgres://embedded'));
  const { partnerApi, adminApi, portal, ops, callbacks } = config;
  return [partnerApi, adminApi, portal.listen, ops, callbacks].map(({ host }) => host);
}

it('binds every listener of an embedded start to the loopback address, unless a setting overrides it', () => {
  expect(hosts({})).toEqual(Array(5).fill('127.0.0.1'));
  const names = ['HOST', 'ADMIN_HOST', 'PORTAL_HOST', 'INSTALL_HOST', 'OPS_HOST', 'CALLBACK_HOST'];
  expect(hosts(Object.fromEntries(names.map((name) => [name, '0.0.0.0'])))).toEqual(Array(5).fill('0.0.0.0'));
});

it.each(['/proc', '/proc/nowhere/data', '/dev/null/data'])('refuses %s as DATA_DIR at once', (folder) => {
  expect(() => openDataDirectory({ DATA_DIR: folder })).toThrow(`DATA_DIR ${folder} is not writable (E`);
});

it('creates missing parents of DATA_DIR with mode 0700', () => {
  const { root } = openDataDirectory({ DATA_DIR: path.join(folder, 'a/b') });
  for (const made of [root, path.dirname(root)]) expect(statSync(made).mode & 0o777).toBe(0o700);
});

describe.each(shells())('a file of DATA_DIR, pasted into %s', (shell) => {
  it.each(["it's", '$HOME `id` $(id)', 'a"b\\c', 'Müller 日本', '*?[x]~#!;&|<>(){}', ' blank at both ends '])(
    'is read below a folder named %j',
    (name) => {
      const file = path.join(folder, name, 'demo.env');
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, 'export FOUND=it-is-read\n');
      expect(pasteInto(shell, `. ${shellWord(file)}\nprintenv FOUND`).stdout).toContain('it-is-read');
    },
  );

  it.each(['-dash.env', 'demo.env'])('is read from the working directory: %s', (name) => {
    writeFileSync(path.join(folder, name), 'export FOUND=it-is-read\n');
    const word = shellWord(path.join(process.cwd(), name));
    expect(pasteInto(shell, `. ${word}\nprintenv FOUND`, folder).stdout).toContain('it-is-read');
  });
});
