// What the builds of the service, of the portal's pages and of the packages have in common: when one is stale, and how
// its compiler runs.
import { spawn } from 'node:child_process';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Whether the build that `stamp` tells of is newer than all of `sources`, files and folders. */
export function isFresh(stamp, sources) {
  const built = newest(stamp);
  return built > 0 && sources.every((source) => newest(source) <= built);
}

/** Tells of a build. Its time is that of the build's start: an edit made while it ran must count as newer. */
export function stampBuild(stamp, startedAt) {
  writeFileSync(stamp, '');
  utimesSync(stamp, startedAt, startedAt);
}

/** Runs a compiler with this Node.js, its words on stderr, and answers its exit code; 1 when it cannot begin. */
export function runCompiler(args, options) {
  const compiler = spawn(process.execPath, args, { ...options, stdio: ['ignore', 2, 2] });
  return new Promise((resolve) => {
    compiler.once('error', (error) => {
      process.stderr.write(`${error.message}\n`);
      resolve(1);
    });
    compiler.once('close', (code) => resolve(code ?? 1));
  });
}

/** The latest change of a file or of anything in a folder, in milliseconds; 0 when it is not there. */
function newest(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), 0);
}
