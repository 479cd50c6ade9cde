// Builds what is stale: the service, compiled and bundled, and the pages of the portal.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { isFresh, runCompiler, stampBuild } from './build-step.mjs';
import { bundleRoles } from './bundle.mjs';
import { buildPortal, isPortalFresh } from './portal-build.mjs';

const SOURCES = [
  'src',
  'migrations',
  'bench',
  'chaos',
  'scripts/bundle.mjs',
  'tsconfig.json',
  'tsconfig.build.json',
  'package-lock.json',
];
/** A build that says nothing for longer than this looks like one that hangs. */
const HEARTBEAT_MS = 10_000;

/**
 * Builds what is stale in a process of its own, whose memory is given back: a compiler and a bundler take some 800 MB, and
 * the service runs for days.
 * @param wanted `service`, `portal`
 * @returns the exit code of the build
 * @throws Error when there is neither a build nor a compiler
 */
export async function buildIfStale(root, wanted) {
  const parts = wanted.filter((part) => isStale[part](root));
  if (parts.length === 0) return 0;
  // A group of its own, so that a signal to this process ends the compilers, too.
  const build = spawn(process.execPath, [import.meta.filename, ...parts], {
    stdio: 'inherit',
    detached: true,
  });
  const stop = (signal) => {
    process.kill(-build.pid, 'SIGTERM');
    process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
  };
  for (const signal of SIGNALS) process.once(signal, stop);
  const status = await new Promise((resolve) => build.once('close', (code) => resolve(code ?? 1)));
  for (const signal of SIGNALS) process.off(signal, stop);
  return status;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const isStale = { service: isServiceStale, portal: (root) => !isPortalFresh(root) };

function isServiceStale(root) {
  const isStale = !isFresh(stampOf(root), sourcesOf(root));
  // A production image is built before and has no compiler.
  if (!isStale || existsSync(compilerOf(root))) return isStale;
  if (existsSync(path.join(root, 'dist'))) return false;
  throw new Error(
    'there is no build, and no compiler to make one: run `npm run build` where the devDependencies are installed',
  );
}

const stampOf = (root) => path.join(root, 'dist/.built');
const sourcesOf = (root) => SOURCES.map((source) => path.join(root, source));
const compilerOf = (root) => path.join(root, 'node_modules/typescript/bin/tsc');

/** Builds the parts beside each other, as a compiler keeps one core busy. @returns the exit code of the first that failed */
async function build(root, parts) {
  const startedAt = new Date();
  const compiling = parts.includes('service')
    ? runCompiler([compilerOf(root), '-p', 'tsconfig.build.json'], { cwd: root })
    : null;
  const steps = {
    ...(compiling && { 'compile the service': compiling, 'bundle the service': bundle(root, compiling) }),
    ...(parts.includes('portal') && { 'build the pages of the portal': buildPortal(root) }),
  };
  const failed = (await told(steps)).find((status) => status !== 0);
  if (failed === undefined && compiling) stampBuild(stampOf(root), startedAt);
  return failed ?? 0;
}

/** What the compiler says of a source that cannot be bundled either tells more. @throws Error when it had nothing to say */
async function bundle(root, compiling) {
  const [bundled] = await Promise.allSettled([bundleRoles(root, compiling)]);
  if ((await compiling) === 0 && bundled.status === 'rejected') throw bundled.reason;
  return 0;
}

/** Waits for all steps, and says on stderr how far they are. @returns their exit codes */
async function told(steps) {
  const names = Object.keys(steps);
  const open = new Set(names);
  const say = (text) => process.stderr.write(`building: ${text}\n`);
  const seconds = () => `${Math.round(performance.now() / 1_000)} s`;
  say(`nothing is built yet, or a source has changed. To do: ${names.join(', ')}`);
  const heartbeat = setInterval(
    () => say(`${seconds()}, still to do: ${[...open].join(', ')}`),
    HEARTBEAT_MS,
  );
  const watched = names.map(async (name) => {
    const status = await steps[name];
    open.delete(name);
    if (status === 0) say(`${names.length - open.size}/${names.length} ${name}: done after ${seconds()}`);
    heartbeat.refresh();
    return status;
  });
  try {
    return await Promise.all(watched);
  } finally {
    clearInterval(heartbeat);
  }
}

if (process.argv[1] === import.meta.filename)
  process.exit(await build(path.resolve(import.meta.dirname, '..'), process.argv.slice(2)));
