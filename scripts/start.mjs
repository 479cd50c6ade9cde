// Builds when a source is newer than the build, then runs one entry point in this process. So that a fresh
// clone starts with one command, and an edit is never run stale.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const ENTRIES = {
  '': 'dist/src/main.js',
  api: 'dist/src/main.api.js',
  admin: 'dist/src/main.admin.js',
  worker: 'dist/src/main.worker.js',
  migrate: 'dist/src/migrate.js',
  openapi: 'dist/src/openapi.js',
  routes: 'dist/src/routes.js',
  reconcile: 'dist/src/main.reconcile.js',
  bench: 'dist/bench/main.js',
};

const root = path.resolve(import.meta.dirname, '..');
// Its time is that of the build's start: an edit made while it ran must count as newer.
const STAMP = path.join(root, 'dist/.built');
const SOURCES = ['src', 'migrations', 'bench', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];

function newest(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), 0);
}

function buildIfStale() {
  const typescript = path.join(root, 'node_modules/typescript/bin/tsc');
  // A production image is built before and has no compiler.
  if (!existsSync(typescript)) return;
  const built = newest(STAMP);
  if (built > 0 && SOURCES.every((source) => newest(path.join(root, source)) <= built)) return;
  const startedAt = new Date();
  process.stderr.write('building (about 10 s, only after a change) ...\n');
  const { status } = spawnSync(process.execPath, [typescript, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) process.exit(status ?? 1);
  writeFileSync(STAMP, '');
  utimesSync(STAMP, startedAt, startedAt);
}

const [role = '', ...rest] = process.argv.slice(2);
const entry = ENTRIES[role];
if (role === 'build') {
  buildIfStale();
  process.exit(0);
}
if (entry === undefined) {
  process.stderr.write(
    `unknown role "${role}"; one of: ${Object.keys(ENTRIES).filter(Boolean).join(', ')}\n`,
  );
  process.exit(1);
}
buildIfStale();
process.argv = [process.argv[0], path.join(root, entry), ...rest];
await import(pathToFileURL(path.join(root, entry)));
