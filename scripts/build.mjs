// Builds what is stale: the service (Nest CLI), the portal's pages (Vite) and the packages that partners install (tsc).
// `npm run build [-- sdk cli]`, or `node scripts/build.mjs <part>...`. The compilers run as child processes, so that a
// service that builds before it starts does not keep their memory.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { SITE_SOURCES } from './site/pages.mjs';

const root = path.resolve(import.meta.dirname, '..');
const NEST = 'node_modules/@nestjs/cli/bin/nest.js';
const VITE = 'node_modules/vite/bin/vite.js';
const TSC = 'node_modules/typescript/bin/tsc';
const PAGES = 'dist/portal';
const COMPRESSED = /\.(js|css|html|svg|json|md|txt)$/;
const MAX_QUALITY = constants.BROTLI_MAX_QUALITY;
/** A tenth larger than with the maximum, in a tenth of the time: readers load few of the many pages. */
const DOCS_QUALITY = 9;
/** The bench writes its results to a folder among its sources. */
const RESULTS = path.join(root, 'bench/results');
/** Print progress at this interval, because a silent build looks like one that hangs. */
const HEARTBEAT_MS = 10_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const PARTS = {
  service: {
    output: 'dist',
    compiler: [NEST, 'build'],
    sources: [
      ...['src', 'migrations', 'bench', 'chaos'],
      ...['nest-cli.json', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'],
    ],
  },
  portal: {
    output: PAGES,
    compiler: [
      VITE,
      'build',
      'portal',
      '--outDir',
      path.join(root, PAGES),
      '--emptyOutDir',
      '--logLevel',
      'warn',
    ],
    // Under NODE_ENV=test, Vite would bundle React's development build.
    env: { NODE_ENV: 'production' },
    sources: [
      ...['src', 'index.html', 'package.json', 'vite.config.mjs', 'tsconfig.json'].map(
        (name) => `portal/${name}`,
      ),
      ...['package-lock.json', ...SITE_SOURCES],
    ],
    finish: finishPages,
  },
  sdk: packagePart('sdk'),
  // The CLI imports the SDK's declarations.
  cli: { ...packagePart('cli'), after: 'sdk' },
};

function packagePart(name) {
  const sources = ['src', 'tsconfig.json', 'package.json'].map((source) => `${name}/${source}`);
  return { output: `${name}/dist`, compiler: [TSC, '-p', name], sources };
}

/**
 * Builds the stale parts side by side and reports progress on stderr.
 * @param names keys of `PARTS`
 * @returns the exit code of the first compiler that failed, or 0
 * @throws Error when there is neither a build nor a compiler
 */
export async function buildIfStale(names) {
  const stale = names.filter(isStale);
  if (stale.length === 0) return 0;
  const say = (text) => process.stderr.write(`building: ${text}\n`);
  const startedAt = performance.now();
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1_000)} s`;
  const open = new Set(stale);
  say(`${stale.join(', ')} (not built yet, or a source has changed)`);
  const heartbeat = setInterval(
    () => say(`${seconds()}, still running: ${[...open].join(', ')}`),
    HEARTBEAT_MS,
  );
  const builds = {};
  for (const name of stale)
    builds[name] = (async () => {
      const failed = (await builds[PARTS[name].after]) ?? 0;
      const status = failed === 0 ? await build(PARTS[name]) : failed;
      open.delete(name);
      if (status === 0) say(`${name} done after ${seconds()}`);
      heartbeat.refresh();
      return status;
    })();
  try {
    return (await Promise.all(Object.values(builds))).find((status) => status !== 0) ?? 0;
  } finally {
    clearInterval(heartbeat);
  }
}

/** A production image has no compiler and runs the build that it ships with. */
function isStale(name) {
  const { output, compiler, sources } = PARTS[name];
  const builtAt = newest(path.join(root, output, '.built'));
  if (builtAt > 0 && sources.every((source) => newest(path.join(root, source)) <= builtAt)) return false;
  if (existsSync(path.join(root, compiler[0]))) return true;
  if (name !== 'service' || existsSync(path.join(root, 'dist'))) return false;
  throw new Error(
    'there is no build, and no compiler to make one: run `npm run build` where the devDependencies are installed',
  );
}

async function build({ output, compiler, env, finish }) {
  const startedAt = new Date();
  const status = await run(compiler, env);
  if (status !== 0) return status;
  await finish?.();
  const stamp = path.join(root, output, '.built');
  writeFileSync(stamp, '');
  // Use the start time, so that an edit made during the build counts as newer.
  utimesSync(stamp, startedAt, startedAt);
  return 0;
}

/** Runs a compiler with its output on stderr. A signal that ends this process ends the compiler first. */
async function run(args, env) {
  const compiler = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2],
  });
  const stop = (signal) => {
    compiler.kill();
    process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
  };
  for (const signal of SIGNALS) process.once(signal, stop);
  const status = await new Promise((resolve) => compiler.once('close', (code) => resolve(code ?? 1)));
  for (const signal of SIGNALS) process.off(signal, stop);
  return status;
}

/** Adds the documentation, and compressed copies, which the portal role serves to browsers that accept them. */
async function finishPages() {
  const pages = path.join(root, PAGES);
  // The Markdown renderer is a devDependency, which a production install does not have.
  const { buildSite } = await import('./site/build.mjs');
  buildSite(root, pages);
  const names = readdirSync(pages, { recursive: true }).filter((name) => COMPRESSED.test(name));
  await Promise.all(
    names.map((name) =>
      compress(path.join(pages, name), name.startsWith('docs') ? DOCS_QUALITY : MAX_QUALITY),
    ),
  );
}

async function compress(file, quality) {
  const content = readFileSync(file);
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
  writeFileSync(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
  writeFileSync(`${file}.br`, await promisify(brotliCompress)(content, { params }));
}

/**
 * @returns the latest modification time of a file or of anything in a folder, in milliseconds; 0 if it does not exist
 */
function newest(file) {
  if (file === RESULTS) return 0;
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), 0);
}

if (process.argv[1] === import.meta.filename) process.exit(await buildIfStale(process.argv.slice(2)));
