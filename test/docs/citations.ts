import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Page } from './page.js';

const FOLDERS = ['src', 'test', 'migrations', 'bench', 'simulators', 'scripts', 'docs'];
const FILES = ['README.md', 'CONTRIBUTING.md', '.env.example', '.dependency-cruiser.cjs', 'eslint.config.js'];
const TEXT = /\.(ts|js|mjs|cjs|md|json)$/;
/** What a measurement leaves behind: no part of the repository, and there on one machine and not on the next. */
const WRITTEN = /^bench\/results(\/|$)/;
/** Where code is written: what such a path names in backticks must be in the repository. */
const NAMED_PATH =
  /`((?:src|test|migrations|bench|simulators|scripts|docs)\/[^`\s]*)`|\]\((?!https?:|#)([^)#\s]+)/g;
/** Entries that have a name and no number are cited behind a neighbour: `(D22, Cancel)`. */
const NAMED_CITATION = /\bD\d+, ([A-Z][a-z]+)\b/g;

/** What can be cited: the headings of docs/decisions.md and the rows of the webhooks' acceptance list. */
export interface Citable {
  readonly decisions: ReadonlySet<string>;
  readonly sections: ReadonlySet<string>;
  readonly guarantees: ReadonlySet<string>;
}

/** @throws Error when two entries have one name */
export function readCitable(): Citable {
  const { text } = new Page('docs/decisions.md');
  const names = [...text.matchAll(/^### (\S+)/gm)].map(([, name]) => name!);
  const decisions = new Set(names);
  if (decisions.size !== names.length) throw new Error('two entries of docs/decisions.md have one name');
  return {
    decisions,
    sections: new Set([...text.matchAll(/^- \*\*Section (\d+),/gm)].map(([, number]) => number!)),
    guarantees: new Set(
      [...readFileSync('docs/webhook-guarantees.md', 'utf8').matchAll(/^\| (A\d+) /gm)].map(([, a]) => a!),
    ),
  };
}

/** Every file of the repository that may cite something. */
export function citingFiles(): string[] {
  const below = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && TEXT.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return [...FILES, ...below].filter((path) => !WRITTEN.test(path));
}

/** What `text`, the content of `path`, cites that nobody finds here; one line each. */
export function citationFaults(path: string, text: string, citable: Citable): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      [...unknownEntries(line, citable), ...issueNumbers(path, line), ...missingPages(path, line)].map(
        (fault) => `${path}:${index + 1}: ${fault}`,
      ),
    );
}

/** Files and folders that a page names and that do not exist. */
export function missingFiles(path: string, text: string): string[] {
  return [...text.matchAll(NAMED_PATH)]
    .map(([, named, linked]) => named ?? join(dirname(path), linked!))
    .filter((file) => !/[*<]/.test(file) && !WRITTEN.test(file) && !existsSync(file))
    .map((file) => `${path}: there is no ${file}`);
}

function unknownEntries(line: string, { decisions, sections, guarantees }: Citable): string[] {
  // `%D0` and `'B1'` are data and no citations.
  const numbered = [...line.matchAll(/(?<![%\\\w])(?<!'(?=\w+'))[DB][1-9]\d?\b/g)].map(([entry]) => entry);
  const named = [...line.matchAll(NAMED_CITATION)].map(([, name]) => name!);
  const rows = [...line.matchAll(/\bD\d+, (A\d+)\b/g)].map(([, row]) => row!);
  const parts = [...line.matchAll(/\bspec section (\d+)/g)].map(([, section]) => section!);
  return [
    ...[...numbered, ...named]
      .filter((name) => !decisions.has(name))
      .map((name) => `docs/decisions.md has no entry ${name}`),
    ...rows
      .filter((row) => !guarantees.has(row))
      .map((row) => `docs/webhook-guarantees.md has no row ${row}`),
    ...parts.filter((part) => !sections.has(part)).map((part) => `the document has no section ${part}`),
  ];
}

/** An issue's number leads out of the repository: a comment gives the reason. Issues of other projects are links. */
function issueNumbers(path: string, line: string): string[] {
  const prose = path.endsWith('.md') ? line.replaceAll(/\]\([^)]*\)/g, ']') : commentOf(line);
  return [...prose.matchAll(/\b(?:issue|part of issue|pull request|PR) ?#?\d+\b|(?<![\w&/])#\d+\b/gi)].map(
    ([cited]) => `cites ${cited}, which nobody finds here; give the reason`,
  );
}

function commentOf(line: string): string {
  return /(?:^|\s)(?:\/\/|\/\*\*?|\*|--|#)\s(.*)$/.exec(line)?.[1] ?? '';
}

/** A Markdown page that is cited by its name, with or without a folder, is one of this repository. */
function missingPages(path: string, line: string): string[] {
  if (!line.includes('.md')) return [];
  return [...line.matchAll(/(?:[\w.-]*\/)*\w[\w-]*\.md\b/g)]
    .map(([page]) => page)
    .filter(
      (page) => !['.', 'docs', dirname(path)].some((folder) => existsSync(normalize(join(folder, page)))),
    )
    .map((page) => `there is no ${page}`);
}
