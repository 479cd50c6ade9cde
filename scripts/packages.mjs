// Compiles the packages that partners install, each when a source of it is newer than its build.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
/** In the order in which they use each other. */
const PACKAGES = ['sdk', 'cli'];

function newest(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), 0);
}

for (const name of PACKAGES) {
  const folder = path.join(root, name);
  if (!existsSync(path.join(folder, 'tsconfig.json'))) continue;
  // Its time is that of the build's start: an edit made while it ran must count as newer.
  const stamp = path.join(folder, 'dist/.built');
  const sources = ['src', 'tsconfig.json', 'package.json'].map((source) => path.join(folder, source));
  const built = newest(stamp);
  if (built > 0 && sources.every((source) => newest(source) <= built)) continue;
  const startedAt = new Date();
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', folder], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
  writeFileSync(stamp, '');
  utimesSync(stamp, startedAt, startedAt);
}
