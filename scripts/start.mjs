// `npm start [-- <role>]`: builds if a source is newer than the build, then runs one entry point in this process. A
// fresh clone starts with one command, and stale code never runs. Variables come from the environment, then from .env
// (ENV_FILE names another file; empty means none).
import { enableCompileCache, flushCompileCache } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildIfStale } from './build.mjs';
import { runDev } from './dev.mjs';
import { loadEnvFile } from './env-file.mjs';

const ENTRIES = {
  '': 'dist/src/main.js',
  api: 'dist/src/main.api.js',
  admin: 'dist/src/main.admin.js',
  portal: 'dist/src/main.portal.js',
  install: 'dist/src/main.install.js',
  worker: 'dist/src/main.worker.js',
  migrate: 'dist/src/migrate.js',
  reconcile: 'dist/src/main.reconcile.js',
  'restore-epoch': 'dist/src/main.restore-epoch.js',
  reseal: 'dist/src/reseal.js',
  'portal-link': 'dist/src/embedded/portal-link.js',
  bench: 'dist/bench/main.js',
  chaos: 'dist/chaos/main.js',
};

/** Roles whose process serves the portal's pages. */
const SERVES_PAGES = ['', 'portal'];

/** The same as `engines` in package.json. */
const MIN_NODE = [22, 19];

const root = path.resolve(import.meta.dirname, '..');

/** Exits the process if a build fails. */
async function build(...wanted) {
  const status = await buildIfStale(wanted).catch((error) => refuse(error.message));
  if (status !== 0) process.exit(status);
}

/** Prints one line and exits. */
function refuse(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** Checks the version, because without npm's Node (`npm ci --omit=optional`) this runs on the system's Node. */
function requireNode([leastMajor, leastMinor]) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return;
  refuse(
    `Node ${leastMajor}.${leastMinor} or newer is required, but this is ${process.versions.node}. Install it, or run npm ci without --omit=optional to get it from npm`,
  );
}

function loadEnv() {
  const file = process.env.ENV_FILE ?? '.env';
  try {
    if (file !== '') loadEnvFile(path.resolve(root, file));
  } catch (error) {
    refuse(`cannot start: ${error.message}`);
  }
}

const [role = '', ...rest] = process.argv.slice(2);
const entry = ENTRIES[role];
requireNode(MIN_NODE);
if (role !== 'dev' && entry === undefined)
  refuse(`unknown role "${role}". Use one of: dev, ${Object.keys(ENTRIES).filter(Boolean).join(', ')}`);
loadEnv();
if (role === 'dev') {
  // The Nest CLI builds the service continuously.
  await build('portal');
  runDev(root);
} else {
  await build('service', ...(SERVES_PAGES.includes(role) ? ['portal'] : []));
  process.argv = [process.argv[0], path.join(root, entry), ...rest];
  // Compiling takes a third of the startup time. Do not use a folder that other users can write to, because its content
  // is executed.
  enableCompileCache(process.env.NODE_COMPILE_CACHE || path.join(root, 'node_modules/.cache/compiled'));
  await import(pathToFileURL(path.join(root, entry)));
  // Write it now. Otherwise the first exit would, and a shutdown has a deadline.
  flushCompileCache();
}
