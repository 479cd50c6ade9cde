// Counts the files and functions of src that run in four operations, on a warm service: the code that a reader of one
// call has to pass. `npm run ways [-- --tree <folder of another commit> --list]`; the other tree needs node_modules and
// a build (`npm run build`). Each role preloads this file, which then counts inside the role.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { freePort } from '../chaos/free-port.ts';

const { values } = parseArgs({
  options: {
    tree: { type: 'string', default: path.resolve(import.meta.dirname, '..') },
    list: { type: 'boolean', default: false },
  },
});
const tree = path.resolve(values.tree);
const PACKAGE = 'pkg_fr_1gb_7d';
/** Time for which the service is watched without calls. Functions that run at this idle rate are subtracted. */
const IDLE_MS = 4_000;
const LIMIT_MS = 30_000;
const ADMIN_TOKEN = randomBytes(24).toString('hex');

const WAYS = ['POST /v1/orders', 'worker to order.issued', 'event to disabled endpoint', 'GET /v1/catalog'];

/** Inside a role: reports over IPC which functions have run since the last request, and how often. */
async function countInThisProcess() {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  process.on('message', (id) => void takeCounts(session).then((counts) => process.send({ id, counts })));
  // An open channel must not keep the role alive after the stop signal.
  process.channel?.unref();
}

/** Functions of dist/src as `file|name|offset`, without modules' top-level code. */
async function takeCounts(session) {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const counts = {};
  for (const { url, functions } of result) {
    const file = /\/dist\/(src\/.+)\.js$/.exec(url)?.[1];
    if (!file) continue;
    for (const { functionName, ranges } of functions) {
      const [{ startOffset, count }] = ranges;
      if (count > 0 && !(functionName === '' && startOffset === 0))
        counts[`${file}.ts|${functionName}|${startOffset}`] = count;
    }
  }
  return counts;
}

const children = [];

const built = (file) => import(pathToFileURL(path.join(tree, 'dist/src', file)));

async function startPostgres(folder) {
  const module = ['embedded/postgres/index.js', 'infra/embedded-postgres/index.js'].find((file) =>
    existsSync(path.join(tree, 'dist/src', file)),
  );
  if (!module) throw new Error(`${tree} has no build: run \`npm run build\` there`);
  const { startEmbeddedPostgres } = await built(module);
  return startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), settings: { fsync: 'off' } });
}

/** Starts a role in its own process, which counts, and waits until it prints `ready`. */
async function startRole(role, environment) {
  const child = fork(path.join(tree, `dist/src/main.${role}.js`), [], {
    cwd: tree,
    execArgv: ['--import', import.meta.url],
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  children.push(child);
  await new Promise((resolve, reject) => {
    child.stdout.on('data', (bytes) => String(bytes).includes('ready') && resolve());
    child.once('exit', (code) => reject(new Error(`${role} exited with code ${code}`)));
  });
  return child;
}

let requests = 0;
/** @returns the process's counts since the last request */
async function take(child) {
  const id = ++requests;
  const answer = new Promise((resolve) => {
    const listen = (message) => {
      if (message.id !== id) return;
      child.off('message', listen);
      resolve(message.counts);
    };
    child.on('message', listen);
  });
  child.send(id);
  return answer;
}

async function call(base, token, method, route, body) {
  const response = await fetch(base + route, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(method === 'POST' ? { 'idempotency-key': randomBytes(12).toString('hex') } : {}),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
  return JSON.parse(text).data;
}

async function until(what, ask) {
  const deadline = Date.now() + LIMIT_MS;
  for (;;) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`timed out after ${LIMIT_MS} ms: ${what}`);
    await delay(25);
  }
}

/** Runs `work` and lists the functions that ran in `child`, except those that also run when idle. */
async function trace(child, idle, work) {
  await take(child);
  const startedAt = performance.now();
  await work();
  const share = (performance.now() - startedAt) / IDLE_MS;
  const counts = await take(child);
  // Allow twice the idle rate plus one, because a sweep may fall into a short window.
  return Object.keys(counts).filter((key) => !(key in idle) || counts[key] > 2 * idle[key] * share + 1);
}

async function idleCounts(child) {
  await take(child);
  await delay(IDLE_MS);
  return take(child);
}

async function measure() {
  const folder = mkdtempSync(path.join(tmpdir(), 'ways-'));
  const postgres = await startPostgres(folder);
  const receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(500).end();
  }).listen(0, '127.0.0.1');
  try {
    const { migrateDatabase } = await built('apps/migration.js');
    await migrateDatabase(postgres.url());
    const [port, adminPort, ...opsPorts] = await Promise.all(Array.from({ length: 5 }, freePort));
    const environment = {
      NODE_ENV: 'test',
      ENV_FILE: '',
      LOG_LEVEL: 'error',
      DATABASE_URL: postgres.url(),
      HOST: '127.0.0.1',
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      ADMIN_TOKENS: `ways:${ADMIN_TOKEN}`,
      SECRETS_KEYS: `ways:${randomBytes(32).toString('base64')}`,
      WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
      // Two attempts, and the first block disables the endpoint.
      WEBHOOK_RETRY_DELAYS_MS: '200',
      WEBHOOK_BLOCKS_BEFORE_DISABLE: '1',
      SWEEP_INTERVAL_MS: '60000',
      RATE_LIMIT_PER_MINUTE: '60000',
      RATE_LIMIT_BURST: '10000',
    };
    const start = (role) => startRole(role, { ...environment, OPS_PORT: String(opsPorts.pop()) });
    // Start them one after the other. On a busy machine, concurrent starts could run into the connect timeout.
    await start('admin');
    const api = await start('api');
    const worker = await start('worker');
    const [partnerUrl, adminUrl] = [port, adminPort].map((each) => `http://127.0.0.1:${each}`);
    return await walk({ api, worker, partnerUrl, adminUrl, receiver });
  } finally {
    receiver.closeAllConnections();
    receiver.close();
    for (const child of children) {
      child.removeAllListeners('exit');
      child.kill('SIGTERM');
    }
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function walk({ api, worker, partnerUrl, adminUrl, receiver }) {
  const admin = (method, route, body) => call(adminUrl, ADMIN_TOKEN, method, `/internal/v1${route}`, body);
  const { id: partnerId } = await admin('POST', '/partners', { name: 'Ways' });
  const { key } = await admin('POST', `/partners/${partnerId}/api-keys`, { mode: 'sandbox' });
  const partner = (method, route, body) => call(partnerUrl, key, method, `/v1${route}`, body);
  const place = () => partner('POST', '/orders', { package_id: PACKAGE, quantity: 1 });
  const issued = (id) =>
    until('order.issued', async () => {
      const order = await partner('GET', `/orders/${id}`);
      return order.status === 'issued' && order;
    });
  const catalog = () => partner('GET', '/catalog');
  const sold = [];
  const esimOf = async ({ id }) => (await partner('GET', '/esims')).find((esim) => esim.order_id === id);
  // Warm up pools, prepared statements and caches.
  for (let i = 0; i < 2; i++) sold.push(await issued((await place()).id));
  for (let i = 0; i < 2; i++) await catalog();
  const [idleApi, idleWorker] = await Promise.all([idleCounts(api), idleCounts(worker)]);

  const ways = {};
  ways['GET /v1/catalog'] = await trace(api, idleApi, catalog);
  ways['worker to order.issued'] = await trace(worker, idleWorker, async () => {
    let order;
    ways['POST /v1/orders'] = await trace(api, idleApi, async () => (order = await place()));
    await issued(order.id);
  });
  const esim = await esimOf(sold[0]);
  await partner('POST', `/sandbox/esims/${esim.id}/activate`);
  const endpoint = await admin('POST', `/partners/${partnerId}/webhook-endpoints`, {
    url: `http://127.0.0.1:${receiver.address().port}/`,
    mode: 'sandbox',
  });
  ways['event to disabled endpoint'] = await trace(worker, idleWorker, async () => {
    await partner('POST', `/sandbox/esims/${esim.id}/consume`, { bytes: 600_000_000 });
    await until('endpoint disabled', async () => {
      const { status } = await admin('GET', `/partners/${partnerId}/webhook-endpoints/${endpoint.id}`);
      return status === 'disabled';
    });
  });
  return ways;
}

function sizeOfSource() {
  const sources = readdirSync(path.join(tree, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'utf8').split('\n').length - 1);
  const lines = sources.reduce((sum, each) => sum + each, 0);
  return { files: sources.length, lines, longest: Math.max(...sources) };
}

async function printWays() {
  const ways = await measure();
  process.stdout.write('| way | functions | files |\n| --- | --- | --- |\n');
  for (const name of WAYS) {
    const passed = ways[name].toSorted();
    const inFiles = new Set(passed.map((each) => each.split('|')[0]));
    process.stdout.write(`| ${name} | ${passed.length} | ${inFiles.size} |\n`);
    if (values.list)
      for (const each of passed) process.stderr.write(`${name}: ${each.split('|').slice(0, 2).join(' ')}\n`);
  }
  const { files, lines, longest } = sizeOfSource();
  process.stdout.write(`\nsrc: ${files} files, ${lines} lines, the longest ${longest}\n`);
}

await (process.argv[1] === import.meta.filename ? printWays() : countInThisProcess());
