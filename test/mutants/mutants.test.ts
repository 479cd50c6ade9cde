import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { listFaults } from './list-faults.js';
import { MUTANTS } from './mutants.js';

const ROOT = path.resolve(import.meta.dirname, '../..');

describe('the list of plausible bugs (npm run mutants)', () => {
  it('fits the tree: every change finds its place exactly once, and every test that must catch it is there', () => {
    expect(MUTANTS.length).toBeGreaterThan(30);
    expect(listFaults(ROOT, MUTANTS)).toEqual([]);
  });

  it('is refused for a place that is gone, there twice, or not changed, and for a test that is gone', () => {
    const file = 'test/mutants/mutants.test.ts';
    const name = 'of-this-test';
    const faults = listFaults(ROOT, [
      { name, file, find: 'listFaults(ROOT', replace: '', tests: [file] },
      { name: 'same', file, find: `ROOT = ${'path'}`, replace: `ROOT = ${'path'}`, tests: [file] },
      { name, file: 'src/gone.ts', find: 'a', replace: 'b', tests: ['test/gone.test.ts'] },
    ]);
    expect(faults).toEqual([
      `two mutants are named ${name}`,
      expect.stringMatching(/^of-this-test: .* times: listFaults\(ROOT$/),
      `same: ${file}: the edit changes nothing`,
      `${name}: src/gone.ts is not there`,
      `${name}: test/gone.test.ts is not there`,
    ]);
  });
});
