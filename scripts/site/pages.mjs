import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Name of the documentation in titles and in `llms.txt`. */
export const SITE = 'Partner eSIM API';

/** Files that tools download, by their path in the repository. Their address has the same path. */
const FILES = ['docs/postman.json', 'docs/openapi/partner.json', 'docs/openapi/quick-start.arazzo.json'];
const VERIFIERS = 'docs/guides/verifiers';

/** The other pages, with their titles in lists. */
const OTHERS = {
  'docs/webhooks.md': 'Webhook reference',
  'docs/errors.md': 'Errors',
  'sdk/README.md': 'TypeScript SDK',
  'cli/README.md': 'Command line',
  'CHANGELOG.md': 'Changelog',
};

/** Everything that the documentation is made of, for the build to notice a change. */
export const SITE_SOURCES = [
  ...['docs/guides', 'docs/reference', ...FILES, ...Object.keys(OTHERS)],
  ...['scripts/site', 'portal/docs'],
];

/**
 * The documentation for partners, read from the repository.
 * @param root folder of the repository
 * @returns its pages in reading order by group, and its downloads by address
 */
export function readSite(root) {
  const read = (file) => readFileSync(path.join(root, file), 'utf8');
  const listed = (file) => linksOf(read(file)).map((link) => path.posix.join(path.posix.dirname(file), link));
  const index = (folder) => [
    `${folder}/README.md`,
    ...new Set(listed(`${folder}/README.md`).filter((file) => isIn(folder, file))),
  ];
  const pages = (files) => files.map((file) => pageOf(file, read(file)));
  const downloads = [
    ...FILES,
    ...readdirSync(path.join(root, VERIFIERS)).map((name) => `${VERIFIERS}/${name}`),
  ];
  return {
    groups: [
      { label: 'Guides', pages: pages(index('docs/guides')) },
      { label: 'API reference', pages: pages(index('docs/reference')) },
      { label: 'More', pages: pages(Object.keys(OTHERS)) },
    ],
    downloads: downloads.filter((file) => existsSync(path.join(root, file))),
  };
}

/** Whether a page is directly in the folder and is not its overview. */
const isIn = (folder, file) =>
  path.posix.dirname(file) === folder && file.endsWith('.md') && !file.endsWith('/README.md');

/** `address` has no extension; the Markdown twin is at `address` + `.md`. */
function pageOf(file, source) {
  const text = cleaned(file === 'CHANGELOG.md' ? forPartners(source) : source);
  const title = OTHERS[file] ?? /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${file} has no heading of level 1`);
  const address = addressOf(file);
  return { file, address, title, summary: summaryOf(text), markdown: absolute(text, file) };
}

/** The address of a file. Overviews are at the address of their folder. */
export function addressOf(file) {
  const name = file.replace(/^docs\//, '').replace(/(\/README)?\.md$/, '');
  return `/docs/${name.toLowerCase() === 'changelog' ? 'changelog' : name}`;
}

/** Drops comments, which say how the file is written. */
function cleaned(text) {
  return `${text.replaceAll(/^<!--[^]*?-->\n+/gm, '').trim()}\n`;
}

/** The changelog's sections for partners. Portal team and operators read the file itself. */
function forPartners(text) {
  const releases = text.split(/^(?=## )/m).slice(1);
  const sections = releases.map((release) => {
    const [head, ...parts] = release.split(/^(?=### )/m);
    return head + parts.filter((part) => part.startsWith('### Partners')).join('');
  });
  return `# Changelog\n\nFind what changes for partners, and what to do about it.\n\n${sections.join('')}`;
}

/** The first paragraph as plain text. */
function summaryOf(text) {
  const paragraph = text.split(/\n{2,}/).find((block, index) => index > 0 && /^[A-Za-z`[*]/.test(block));
  return plain(paragraph ?? '');
}

/** Markdown as plain text on one line. */
export function plain(text) {
  return text
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** Targets of the links to files, in page order. */
function linksOf(text) {
  return [...text.matchAll(/\]\(([^)#\s]+)[^)\s]*\)/g)].map(([, link]) => link);
}

/** Makes links absolute, to the Markdown twin of each page, because a page's address is not its path. */
function absolute(text, file) {
  let inCode = false;
  return text
    .split('\n')
    .map((line) => {
      if (line.startsWith('```')) inCode = !inCode;
      return inCode ? line : line.replaceAll(/\]\(([^)\s]+)\)/g, (_, link) => `](${target(link, file)})`);
    })
    .join('\n');
}

function target(link, file) {
  if (/^[a-z]+:/.test(link)) return link;
  const [to, fragment] = link.split('#');
  const linked = to === '' ? file : path.posix.join(path.posix.dirname(file), to);
  const address = addressOf(linked) + (linked.endsWith('.md') ? '.md' : '');
  return fragment === undefined ? address : `${address}#${fragment}`;
}
