import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { listFaults } from './list-faults.js';
import { MUTANTS } from './mutants.js';

const ROOT = path.resolve(import.meta.dirname, '../..');

describe('the list of mutants (npm run mutants)', () => {
  it('matches the tree: every change applies exactly once, and every test file exists', () => {
    expect(MUTANTS.length).toBeGreaterThan(30);
    expect(listFaults(ROOT, MUTANTS)).toEqual([]);
  });

  it('is rejected for a missing, ambiguous or empty change, and for a missing test file', () => {
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
