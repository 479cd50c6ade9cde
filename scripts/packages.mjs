// Compiles the packages that partners install, each when a source of it is newer than its build.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { isFresh, runCompiler, stampBuild } from './build-step.mjs';

const root = path.resolve(import.meta.dirname, '..');
/** In the order in which they use each other. */
const PACKAGES = ['sdk', 'cli'];

for (const name of PACKAGES) {
  const folder = path.join(root, name);
  if (!existsSync(path.join(folder, 'tsconfig.json'))) continue;
  const stamp = path.join(folder, 'dist/.built');
  const sources = ['src', 'tsconfig.json', 'package.json'].map((source) => path.join(folder, source));
  if (isFresh(stamp, sources)) continue;
  const startedAt = new Date();
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const status = await runCompiler([compiler, '-p', folder]);
  if (status !== 0) process.exit(status);
  stampBuild(stamp, startedAt);
}
