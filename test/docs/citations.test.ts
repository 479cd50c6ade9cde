import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { citationFaults, citingFiles, missingFiles, readCitable } from './citations.js';

const citable = readCitable();
/** Joined from parts, or this file would cite them itself. */
const UNKNOWN = { decision: 'D' + '99', built: 'B' + '98', row: 'A' + '97', section: 'spec section ' + '12' };

describe('whoever has this repository alone understands what it cites', () => {
  it('finds an entry for every citation, no issue numbers, and every page that is named', () => {
    const files = citingFiles();
    expect(files.length).toBeGreaterThan(300);
    expect(files.flatMap((path) => citationFaults(path, readFileSync(path, 'utf8'), citable))).toEqual([]);
  });

  it('finds every file that the pages name', () => {
    // The guarantees name tests by paths below test/.
    const below = readdirSync('docs').filter((name) => /(?<!-guarantees)\.md$/.test(name));
    const pages = ['README.md', 'CONTRIBUTING.md', ...below.map((name) => `docs/${name}`)];
    expect(pages.length).toBeGreaterThan(10);
    expect(pages.flatMap((page) => missingFiles(page, readFileSync(page, 'utf8')))).toEqual([]);
  });

  it('has context, decision and consequence in every entry, and the section that a decision fills in', () => {
    const entries = readFileSync('docs/decisions.md', 'utf8').split(/^### /m).slice(1);
    expect(entries.length).toBe(citable.decisions.size);
    for (const entry of entries) {
      const built = /^B\d+ /.test(entry);
      for (const part of ['Context:', 'Decision:', 'Consequence:'])
        expect(entry, entry.slice(0, 40)).toMatch(new RegExp(`^${part}`, 'm'));
      if (!built) expect(entry.replaceAll(/\s+/g, ' '), entry.slice(0, 40)).toMatch(/Fills in sections? \d/);
    }
  });
});

describe('the check of citations', () => {
  const faultsOf = (text: string, path = 'src/x.ts') => citationFaults(path, text, citable);

  it.each([
    [`/** Fenced (${UNKNOWN.decision}). */`],
    [`/** From D30 to ${UNKNOWN.decision}. */`],
    [`-- one statement (${UNKNOWN.built})`],
    [`// Gone (D22, ${'Vani' + 'shed'}).`],
    [`describe('a block (D31, ${UNKNOWN.row})', () => {`],
    [`/** Strict (${UNKNOWN.section}). */`],
    [`// As issue ${4} wants.`],
    [` * the third part (issue #${4},`],
    [`// See #${12}.`],
    [`/** As in ${'anchors/esim' + '.md'}, 3.1. */`],
    [`/** The contract (${'api' + '.md'}). */`],
  ])('refuses %s', (text) => {
    expect(faultsOf(text)).toHaveLength(1);
  });

  it.each([
    ['/** Held (D32), and never dropped (D22, Cancel; B8). */'],
    ["describe('a block (D31, A11)', () => {"],
    ["const operators = ['A1', 'B1', 'D99'.slice(1)];"],
    ["const path = '/v1/orders/%D0%80';"],
    ["const colour = '#123';"],
    ['// The tables are in docs/providers.md (spec section 6).'],
  ])('takes %s', (text) => {
    expect(faultsOf(text)).toEqual([]);
  });

  it('refuses a page that names a file that is not there', () => {
    const text = `\`src/nowhere.ts\`, \`src/common/errors/\` and [a page](nowhere.html)`;
    expect(missingFiles('docs/x', text)).toEqual([
      'docs/x: there is no src/nowhere.ts',
      'docs/x: there is no docs/nowhere.html',
    ]);
  });

  it('asks for no file that a measurement leaves behind, on whichever machine it runs', () => {
    const text = '`bench/results`, `bench/results/` and `bench/results/never-written-here.json`';
    expect(missingFiles('docs/x', text)).toEqual([]);
    expect(missingFiles('docs/x', '`bench/resultss`')).toHaveLength(1);
  });
});
