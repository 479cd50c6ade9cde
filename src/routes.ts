import 'reflect-metadata';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { renderRoutes } from './apps/routes.js';

/** npm runs scripts in the project's folder. */
const FILE = path.resolve('docs/routes.md');

const generated = await renderRoutes();
if (process.argv.includes('--check')) {
  const drift = differences(readCommitted(), generated);
  for (const line of drift) console.error(`docs/routes.md: ${line}`);
  if (drift.length > 0) {
    console.error('the page does not describe the code: run `npm run routes` and commit');
    process.exitCode = 1;
  }
} else {
  writeFileSync(FILE, generated);
  console.log('docs/routes.md is written');
}

function readCommitted(): string {
  try {
    return readFileSync(FILE, 'utf8');
  } catch {
    return '';
  }
}

/** Lines that appear in only one of the texts; empty when the texts are equal. */
function differences(committed: string, current: string): string[] {
  if (committed === current) return [];
  const [before, after] = [committed.split('\n'), current.split('\n')];
  const gone = before.filter((line) => !after.includes(line)).map((line) => `gone: ${line}`);
  const fresh = after.filter((line) => !before.includes(line)).map((line) => `new: ${line}`);
  return gone.length + fresh.length > 0 ? [...gone, ...fresh] : ['changed: the order of lines'];
}
