// Runs every role as in the image, in a bubblewrap sandbox that needs no container engine. The root is read-only and
// contains only Node, its libraries and the assembled folder (no shell, no npm). /tmp is a tmpfs. The process is pid 1
// with uid 65532 and no capabilities. Each role must serve /readyz and /metrics and exit with code 0 after SIGTERM, and
// an order must be issued.
// `node ops/image/prove.mjs`, after the build. If bwrap is missing or not permitted, prints the reason and exits with
// 0.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../../dist/src/embedded/postgres/index.js';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const UID = '65532';
const root = path.resolve(import.meta.dirname, '../..');

const refusal = whyImpossible();
if (refusal !== null) {
  console.log(`not proven: ${refusal}`);
  process.exit(0);
}

const place = mkdtempSync(path.join(tmpdir(), 'esim-image-'));
const app = path.join(place, 'app');
execFileSync(process.execPath, [path.join(root, 'ops/image/assemble.mjs'), app], { stdio: 'inherit' });
const compiled = path.join(app, 'compiled');
mkdirSync(compiled);
const roles = [];
const postgres = await startEmbeddedPostgres({ dataDir: path.join(place, 'postgres') });
try {
  const env = {
    NODE_ENV: 'production',
    DATABASE_URL: overTcp(postgres.url()),
    ADMIN_TOKENS: `portal:${randomBytes(24).toString('hex')}`,
    SECRETS_KEYS: `first:${randomBytes(32).toString('base64')}`,
    HOST: '127.0.0.1',
    PORT: String(await freePort()),
    ADMIN_PORT: String(await freePort()),
    PORTAL_PORT: '0',
    INSTALL_PORT: '0',
    PORTAL_URL: 'https://portal.example.com',
    INSTALL_URL: 'https://install.example.com',
  };
  proveTheWalls();
  proveTheCompiledCode();
  await migrate(env);
  for (const role of ['api', 'admin', 'worker', 'portal', 'install']) roles.push(await startRole(role, env));
  await proveAnOrder(env);
  for (const role of roles) await stopRole(role);
  console.log(
    'proven: read-only root, uid 65532, no capabilities, no shell, only /tmp writable, SIGTERM handled as pid 1',
  );
} catch (error) {
  for (const { role, said } of roles) console.error(`output of ${role}: ${said}`);
  throw error;
} finally {
  for (const { child } of roles) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(place, { recursive: true, force: true });
}

function whyImpossible() {
  if (!existsSync(path.join(root, 'dist/src/main.api.js'))) return 'there is no build (npm run build)';
  const probe = spawnSync('bwrap', [
    '--ro-bind',
    '/',
    '/',
    '--unshare-user',
    '--uid',
    UID,
    '--unshare-pid',
    'true',
  ]);
  if (probe.error) return 'bwrap is not installed (apt-get install bubblewrap)';
  return probe.status === 0 ? null : `bwrap is not permitted here: ${probe.stderr.toString().trim()}`;
}

/** Removes the Unix socket, which is in the host's /tmp and therefore not visible in the sandbox. */
function overTcp(databaseUrl) {
  const url = new URL(databaseUrl);
  url.searchParams.delete('host');
  return url.href;
}

/**
 * The sandbox contains Node and its libraries only. It shares the host's network, because PostgreSQL listens on
 * loopback.
 */
function walls(env, more = []) {
  const libraries = ['/usr/lib', '/lib', '/lib64'].filter((folder) => existsSync(folder));
  const names = ['/etc/ssl', '/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf'].filter((file) =>
    existsSync(file),
  );
  return [
    ...libraries.flatMap((folder) => ['--ro-bind', realpathSync(folder), folder]),
    ...names.flatMap((file) => ['--ro-bind', realpathSync(file), file]),
    ...['--ro-bind', realpathSync(process.execPath), '/nodejs/bin/node', '--ro-bind', app, '/app'],
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', ...more, '--remount-ro', '/'],
    ...['--unshare-user', '--uid', UID, '--gid', UID, '--unshare-pid', '--unshare-ipc', '--as-pid-1'],
    ...['--cap-drop', 'ALL', '--die-with-parent', '--new-session', '--chdir', '/app', '--clearenv'],
    ...Object.entries({ NODE_COMPILE_CACHE: '/app/compiled', ...env, TMPDIR: '/tmp' }).flatMap(
      ([name, value]) => ['--setenv', name, value],
    ),
    '/nodejs/bin/node',
    '--enable-source-maps',
  ];
}

/** Checks the sandbox from inside. Without it, running the roles would prove nothing. */
function proveTheWalls() {
  const program = `
    const fs = require('node:fs');
    const refused = (act) => { try { act(); return false; } catch { return true; } };
    console.log(JSON.stringify({
      uid: process.getuid(), pid: process.pid,
      root: refused(() => fs.writeFileSync('/x', '')), app: refused(() => fs.writeFileSync('/app/x', '')),
      tmp: !refused(() => fs.writeFileSync('/tmp/x', '')),
      shell: ['/bin/sh', '/usr/bin/sh', '/bin/bash', '/usr/bin/env'].filter((file) => fs.existsSync(file)),
      capabilities: /CapEff:\\s*(\\w+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1],
    }));`;
  const { stdout, stderr } = spawnSync('bwrap', [...walls({}), '-e', program], { encoding: 'utf8' });
  assert.deepEqual(
    JSON.parse(stdout || 'null'),
    { uid: 65532, pid: 1, root: true, app: true, tmp: true, shell: [], capabilities: '0000000000000000' },
    stderr,
  );
}

/** Compiles as the Dockerfile does, then checks that Node.js uses the cache under the read-only root. */
function proveTheCompiledCode() {
  const compiling = walls({ NODE_COMPILE_CACHE: '' }, ['--bind', compiled, '/tmp/compiled']);
  execFileSync('bwrap', [...compiling, '/app/compile.mjs', '/tmp/compiled'], { stdio: 'inherit' });
  const log = path.join(place, 'compile-cache.log');
  // A file, because Node drops lines of this log when a pipe is full.
  const stderr = openSync(log, 'w');
  spawnSync('bwrap', [...walls({ NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }), 'dist/src/main.api.js'], {
    stdio: ['ignore', 'ignore', stderr],
  });
  closeSync(stderr);
  const lines = readFileSync(log, 'utf8');
  for (const file of ['app/dist/src/apps/role-process.js', '@nestjs/core/nest-factory.js'])
    assert.ok(lines.includes(`${file} was accepted`), `${file} was compiled again`);
  console.log('compiled code: loaded from the image');
}

async function migrate(env) {
  const child = spawn('bwrap', [...walls(env), 'dist/src/migrate.js'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  assert.equal(code, 0, 'migrate failed');
  console.log('migrate: done');
}

async function startRole(role, env) {
  const port = await freePort();
  const child = spawn(
    'bwrap',
    ['--info-fd', '3', ...walls({ ...env, OPS_PORT: String(port) }), `dist/src/main.${role}.js`],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  const started = { role, child, ended: once(child, 'exit'), said: '', info: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text) => (started.said = (started.said + text).slice(-4_000)));
  child.stdio[3].on('data', (text) => (started.info += text));
  const url = `http://127.0.0.1:${port}`;
  await untilReady(child, `${url}/readyz`, () => `${role}: ${started.said}`);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, /^service_build_info\{/m);
  console.log(`${role}: ready and scraped`);
  return started;
}

async function stopRole(started) {
  const { role, child, ended, info } = started;
  process.kill(JSON.parse(info)['child-pid'], 'SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  const [code] = await ended;
  clearTimeout(timer);
  assert.equal(code, 0, `${role} did not stop cleanly: ${started.said}`);
  console.log(`${role}: stopped by SIGTERM`);
}

/**
 * Checks parts that only a call exercises: validation, the catalog, the worker, and the thread that renders QR codes.
 */
async function proveAnOrder({ PORT, ADMIN_PORT, ADMIN_TOKENS }) {
  const [admin, api] = [`http://127.0.0.1:${ADMIN_PORT}/internal/v1`, `http://127.0.0.1:${PORT}/v1`];
  const office = ADMIN_TOKENS.slice(ADMIN_TOKENS.indexOf(':') + 1);
  const partner = await call(`${admin}/partners`, office, { name: 'Image Travel' });
  const { key } = await call(`${admin}/partners/${partner.id}/api-keys`, office, { mode: 'sandbox' });
  const refused = await send(`${api}/orders`, key, { package_id: 7 });
  assert.equal(refused.status, 400, await refused.text());
  let order = await call(`${api}/orders`, key, { package_id: 'pkg_fr_1gb_7d' });
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (order.status !== 'issued' && performance.now() < deadline) {
    await sleep(100);
    order = await call(`${api}/orders/${order.id}`, key);
  }
  assert.equal(order.status, 'issued');
  const { svg } = await call(`${api}/esims/${order.esims[0].esim_id}/qr`, key);
  assert.match(svg, /^<svg/);
  console.log('order: rejected when invalid, issued by the worker, QR code rendered');
}

function send(url, token, body) {
  const headers = { authorization: `Bearer ${token}` };
  if (body === undefined) return fetch(url, { headers });
  return fetch(url, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      'idempotency-key': randomBytes(16).toString('hex'),
    },
    body: JSON.stringify(body),
  });
}

async function call(url, token, body) {
  const answer = await send(url, token, body);
  const text = await answer.text();
  assert.ok(answer.ok, `${url}: ${answer.status} ${text}`);
  return JSON.parse(text).data;
}

/** @returns a loopback port that is currently free */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function untilReady(child, url, lastWords) {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    const answer = await fetch(url).catch(() => null);
    if (answer?.ok) return;
    await sleep(100);
  }
  child.kill('SIGKILL');
  throw new Error(`not ready: ${lastWords()}`);
}
