import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const FOLDERS = ['src', 'test', 'migrations', 'bench', 'simulators', 'scripts', 'docs'];
const FILES = ['README.md', 'CONTRIBUTING.md', '.env.example', '.dependency-cruiser.cjs', 'eslint.config.js'];
/** Measurements create these files, which are not part of the repository. */
const WRITTEN = /^bench\/results(\/|$)/;
/** A path in backticks, or the target of a link. */
const NAMED_PATH =
  /`((?:src|test|migrations|bench|simulators|scripts|docs)\/[^`\s]*)`|\]\((?!https?:|#)([^)#\s]+)/g;

const read = (file: string): string => readFileSync(file, 'utf8');
const decisions = [...read('docs/decisions.md').matchAll(/^### (\S+)/gm)].map(([, name]) => name!);

function citingFiles(): string[] {
  const below = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|js|mjs|cjs|md|json)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return [...FILES, ...below].filter((file) => !WRITTEN.test(file));
}

/** Citations in a line that do not resolve within the repository. */
function faultsIn(file: string, line: string): string[] {
  // `%D0` and `'B1'` are data, not citations.
  const cited = [...line.matchAll(/(?<![%\\\w])(?<!'(?=\w+'))[DB][1-9]\d?\b/g)].map(([entry]) => entry);
  const prose = file.endsWith('.md')
    ? line.replaceAll(/\]\([^)]*\)/g, ']')
    : (/(?:^|\s)(?:\/\/|\/\*\*?|\*|--|#)\s(.*)$/.exec(line)?.[1] ?? '');
  const issues = /\b(?:issue|part of issue|pull request|PR) ?#?\d+\b|(?<![\w&/])#\d+\b/gi;
  return [
    ...cited
      .filter((entry) => !decisions.includes(entry))
      .map((entry) => `docs/decisions.md has no ${entry}`),
    ...[...prose.matchAll(issues)].map(([issue]) => `${issue} is not in this repository: give the reason`),
  ];
}

it('records each decision once', () => {
  expect(decisions.filter((name, nth) => decisions.indexOf(name) !== nth)).toEqual([]);
});

it('cites only decisions that exist, and no issue numbers', () => {
  const files = citingFiles();
  expect(files.length).toBeGreaterThan(300);
  const faults = files.flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((line, nth) => faultsIn(file, line).map((fault) => `${file}:${nth + 1}: ${fault}`)),
  );
  expect(faults).toEqual([]);
});

it('names only files that exist', () => {
  const pages = readdirSync('docs').filter(
    (name) => name.endsWith('.md') && name !== 'webhook-guarantees.md',
  );
  const missing = ['README.md', 'CONTRIBUTING.md', ...pages.map((name) => `docs/${name}`)].flatMap((page) =>
    [...read(page).matchAll(NAMED_PATH)]
      .map(([, named, linked]) => named ?? join(dirname(page), linked!))
      .filter((file) => !/[*<]/.test(file) && !WRITTEN.test(file) && !existsSync(file))
      .map((file) => `${page}: ${file}`),
  );
  expect(missing).toEqual([]);
});
