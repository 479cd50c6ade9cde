// Puts each bug of test/mutants/mutants.ts into a copy of the tree, one at a time, and runs the tests that must catch
// it. `npm run mutants [-- --only <part of a name>] [--jobs 1] [--limit-s 600]` exits with 1 if a mutant survives or
// cannot be tried. `-- --check` runs none and only lists changes that no longer match the tree.
import 'reflect-metadata';
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import typescript from 'typescript';
import { builtFileOf } from '../test/harness/built-service.plugin.ts';
import { createTemplate } from '../test/harness/template-database.ts';
import { editFault, listFaults } from '../test/mutants/list-faults.ts';
import { MUTANTS } from '../test/mutants/mutants.ts';

const MAX_JOBS = 2;
const root = path.resolve(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    jobs: { type: 'string', default: String(MAX_JOBS) },
    'limit-s': { type: 'string', default: '600' },
    check: { type: 'boolean', default: false },
  },
});
const faults = listFaults(root, MUTANTS);
for (const fault of faults) process.stderr.write(`${fault}\n`);
if (values.check) {
  process.stdout.write(`${MUTANTS.length} mutants, ${faults.length} faults\n`);
  process.exit(faults.length > 0 ? 1 : 0);
}
const limitMs = Number(values['limit-s']) * 1_000;
const jobs = Math.min(MAX_JOBS, Math.max(1, Number(values.jobs)));

/** Parts of the tree that are not copied. */
const LEFT_OUT = new Set(['.git', 'node_modules', 'dist', '.data', '.tsbuildinfo']);
const workshop = mkdtempSync(path.join(tmpdir(), 'mutants-'));

/** Uses hard links. `applyEdit` replaces a changed file instead of writing to it, so the original stays intact. */
function linkTree(from, to) {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) linkTree(source, target);
    else if (entry.isFile()) linkOrCopy(source, target);
  }
}

function linkOrCopy(source, target) {
  try {
    linkSync(source, target);
  } catch (error) {
    if (error.code !== 'EXDEV' && error.code !== 'EPERM') throw error;
    cpSync(source, target);
  }
}

function copyTree(to, sharesBuild) {
  mkdirSync(to);
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name)) continue;
    const [source, target] = [path.join(root, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) linkTree(source, target);
    else if (entry.isFile()) linkOrCopy(source, target);
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(to, 'node_modules'));
  // Copy the build, because a test may rebuild it.
  if (sharesBuild)
    cpSync(path.join(root, 'dist'), path.join(to, 'dist'), { recursive: true, preserveTimestamps: true });
}

/**
 * Starts one server with a migrated template and builds once, for all mutants that change neither. Otherwise these
 * steps would take most of the time. The settings match test/harness/global-setup.ts.
 */
async function prepareServer() {
  const built = spawnSync(process.execPath, ['scripts/build.mjs', 'service', 'portal'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (built.status !== 0) process.exit(1);
  const { startEmbeddedPostgres } = await import('../dist/src/embedded/postgres/index.js');
  const { migrateDatabase } = await import('../dist/src/apps/migration.js');
  const postgres = await startEmbeddedPostgres({
    dataDir: path.join(workshop, 'postgres'),
    settings: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      autovacuum: 'off',
      max_connections: 400,
    },
  });
  await createTemplate({
    dataDir: path.join(workshop, 'postgres'),
    url: (database) => postgres.url(database),
    migrate: migrateDatabase,
  });
  return postgres;
}

/** @throws Error unless the tree contains `find` exactly once. Otherwise the list of mutants needs an update. */
function applyEdit(tree, edit) {
  const fault = editFault(tree, edit);
  if (fault !== null) throw new Error(fault);
  const target = path.join(tree, edit.file);
  const text = readFileSync(target, 'utf8');
  // Create a new file, because the old one is a hard link to the original.
  unlinkSync(target);
  writeFileSync(
    target,
    text.replace(edit.find, () => edit.replace),
  );
}

/** Compiles one changed file into the build, because tests load the service from there. */
function compile(tree, file) {
  const builtFile = builtFileOf(file);
  if (builtFile === null) return;
  const { outputText } = typescript.transpileModule(readFileSync(path.join(tree, file), 'utf8'), {
    fileName: file,
    compilerOptions: compilerOptions(),
  });
  writeFileSync(path.join(tree, builtFile), outputText);
}

function compilerOptions() {
  const { config } = typescript.readConfigFile(path.join(root, 'tsconfig.json'), typescript.sys.readFile);
  const { options } = typescript.convertCompilerOptionsFromJson(config.compilerOptions, root);
  // For a single file, the compiler cannot see that its package uses ES modules.
  const format = { module: typescript.ModuleKind.ESNext, moduleResolution: undefined };
  return { ...options, ...format, noEmit: false, sourceMap: false, allowImportingTsExtensions: false };
}

function runTests(tree, { tests, build }) {
  const result = path.join(tree, 'mutant-result.json');
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...tests];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...args, '--reporter=json', `--outputFile=${result}`], {
      cwd: tree,
      env: {
        ...process.env,
        TEST_PATIENCE_MS: '60000',
        ...(build ? {} : { TEST_PREPARED_SERVER: server.url() }),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
      // A separate process group, so that the time limit also kills the workers.
      detached: true,
    });
    let errors = '';
    child.stderr.on('data', (chunk) => (errors = (errors + chunk).slice(-4_000)));
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      process.kill(-child.pid, 'SIGKILL');
    }, limitMs);
    child.on('close', () => {
      clearTimeout(timer);
      resolve(isLate ? { outcome: 'too late' } : readResult(result, errors));
    });
  });
}

function readResult(file, errors) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { outcome: 'not run', detail: errors.trim().split('\n').slice(-8).join('\n') };
  }
  const all = report.testResults.flatMap((suite) => suite.assertionResults);
  const failed = all.filter((test) => test.status === 'failed');
  const more = failed.length > 1 ? ` (and ${failed.length - 1} more)` : '';
  if (failed.length > 0) return { outcome: 'caught', detail: failed[0].fullName + more };
  const broken = report.testResults.find((suite) => suite.status === 'failed');
  // If a file fails to load, the mutant may be invalid, or the service may not start with it.
  const message = String(broken?.message ?? '').slice(0, 500);
  // The tests were found, but a hook that runs before them failed.
  if (broken && broken.assertionResults.length > 0)
    return { outcome: 'caught', detail: `a hook: ${message.split('\n')[0]}` };
  if (broken) return { outcome: 'not run', detail: message };
  return all.some((test) => test.status === 'passed') ? { outcome: 'SURVIVED' } : { outcome: 'not run' };
}

async function tryMutant(mutant) {
  const tree = path.join(workshop, mutant.name);
  const startedAt = performance.now();
  try {
    copyTree(tree, !mutant.build);
    for (const edit of mutant.edits ?? [mutant, ...(mutant.also ?? [])]) {
      applyEdit(tree, edit);
      if (!mutant.build) compile(tree, edit.file);
    }
    for (const test of mutant.tests) statSync(path.join(tree, test));
    return { ...(await runTests(tree, mutant)), seconds: (performance.now() - startedAt) / 1_000 };
  } catch (error) {
    return { outcome: 'not run', detail: error.message, seconds: (performance.now() - startedAt) / 1_000 };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

const chosen = MUTANTS.filter(
  ({ name }) => values.only.length === 0 || values.only.some((part) => name.includes(part)),
);
if (chosen.length === 0) throw new Error('no mutant matches --only');
const server = await prepareServer();
process.on('exit', () => rmSync(workshop, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => void server.stop().then(() => process.exit(1)));

// The tests must pass without a mutant. Otherwise their failures would count as caught.
const control = await tryMutant({ name: 'none', edits: [], tests: chosen[0].tests });
if (control.outcome !== 'SURVIVED') {
  process.stderr.write(`without a mutant ${chosen[0].tests.join(', ')} fail: ${control.detail}\n`);
  await server.stop();
  process.exit(1);
}

const results = new Map();
const waiting = [...chosen];
async function work() {
  for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
    const result = await tryMutant(mutant);
    results.set(mutant.name, result);
    const line = `${String(results.size).padStart(3)}/${chosen.length} ${mutant.name}: ${result.outcome} (${Math.round(result.seconds)} s)`;
    process.stdout.write(`${line}${result.outcome === 'caught' ? '' : `\n${result.detail ?? ''}`}\n`);
  }
}
await Promise.all(Array.from({ length: jobs }, work));
await server.stop();

process.stdout.write('\n| mutant | outcome | caught by |\n| --- | --- | --- |\n');
for (const { name } of chosen) {
  const { outcome, detail } = results.get(name);
  process.stdout.write(`| ${name} | ${outcome} | ${outcome === 'caught' ? detail : ''} |\n`);
}
const missed = chosen.filter(({ name }) => results.get(name).outcome !== 'caught');
process.stdout.write(`\n${chosen.length - missed.length} of ${chosen.length} caught\n`);
process.exit(missed.length > 0 ? 1 : 0);
