import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Edit, Mutant } from './mutants.js';

/**
 * Faults in a list of mutants for the tree at `root`, one line each: a duplicate name, a missing file, a `find` that
 * does not occur exactly once, or an edit that changes nothing. This keeps the list in step with the code.
 */
export function listFaults(root: string, mutants: readonly Mutant[]): string[] {
  const names = mutants.map(({ name }) => name);
  const doubled = names.filter((name, index) => names.indexOf(name) !== index);
  return [
    ...doubled.map((name) => `two mutants are named ${name}`),
    ...mutants.flatMap((mutant) => mutantFaults(root, mutant).map((fault) => `${mutant.name}: ${fault}`)),
  ];
}

function mutantFaults(root: string, mutant: Mutant): string[] {
  const edits = [mutant, ...(mutant.also ?? [])].flatMap((edit) => editFault(root, edit) ?? []);
  const tests = mutant.tests.filter((test) => !isFile(path.join(root, test)));
  return [...edits, ...tests.map((test) => `${test} is not there`)];
}

/** The reason why the edit cannot be applied, or null when it can. */
export function editFault(root: string, { file, find, replace }: Edit): string | null {
  const target = path.join(root, file);
  if (!isFile(target)) return `${file} is not there`;
  if (find === replace) return `${file}: the edit changes nothing`;
  const count = readFileSync(target, 'utf8').split(find).length - 1;
  return count === 1 ? null : `${file} has ${count} times: ${find}`;
}

function isFile(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}
