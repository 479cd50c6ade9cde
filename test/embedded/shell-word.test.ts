import { mkdtempSync, rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellWord } from '../../src/embedded/banner.js';
import { pasteInto, shells } from '../harness/embedded-start.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'esim-word-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(shells())('a file of DATA_DIR, pasted into %s', (shell) => {
  it.each([
    'plain.dir-1',
    'with blank',
    "it's",
    '$HOME `id` $(id)',
    'a"b\\c',
    'Müller 日本',
    '*?[x]~#!;&|<>(){}',
    ' blank at both ends ',
  ])('is read below a folder named %j', (name) => {
    const file = path.join(folder, name, 'demo.env');
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, 'export FOUND=it-is-read\n');
    expect(pasteInto(shell, `. ${shellWord(file)}\nprintenv FOUND`).stdout).toContain('it-is-read');
  });

  it.each(['-dash.env', 'demo.env'])('is read from the working directory: %s', (name) => {
    writeFileSync(path.join(folder, name), 'export FOUND=it-is-read\n');
    const word = shellWord(path.join(process.cwd(), name));
    expect(pasteInto(shell, `. ${word}\nprintenv FOUND`, folder).stdout).toContain('it-is-read');
  });
});
