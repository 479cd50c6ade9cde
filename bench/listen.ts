/**
 * `npm run bench -- listen`: the cost of waiting for a service without events, over `--minutes`: of an idle `esim
 * listen` (calls of one token each, connections, transactions and CPU time), and of 1,000 calls that wait.
 * Baseline: the same service over the same time without the command.
 * Read the difference between the two. `docs/performance.md` shows the table.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { BenchOptions } from './main.js';
import type { Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import { ORDER, ORDERS_PATH, sendOk, startReceiver } from './shared/http.js';
import { cpuSecondsOf, memoryOf } from './shared/machine.js';
import { createPartners } from './shared/partners.js';
import { RESULTS, ROOT, row, type Section } from './shared/report.js';
import { type ServiceProcess, startRoles } from './shared/service-process.js';

const DATABASE = 'bench_listen';
const CLI = path.join(ROOT, 'cli/dist/main.js');
const MINUTE_MS = 60_000;
/** Time for the command to read its first pages and start waiting. */
const SETTLE_MS = 5_000;
/** Half of them in each mode, below the limits of one process. */
const WAITS = 1_008;
const WAITS_PER_KEY = 8;

interface Bed {
  readonly server: DatabaseServer;
  readonly api: ServiceProcess;
  readonly keyId: string;
}

/** Cumulative use. `apiSeconds` is CPU time; null without /proc. */
interface Used {
  readonly calls: number;
  readonly transactions: number;
  readonly apiSeconds: number | null;
}

export async function benchListen(
  { minutes }: BenchOptions,
  cleanups: Cleanups,
): Promise<readonly Section[]> {
  if (!existsSync(CLI))
    throw new Error(`${path.relative(ROOT, CLI)} is missing. Run npm run build -- sdk cli.`);
  const server = cleanups.stopping(await DatabaseServer.start());
  const databaseUrl = await server.createDatabase(DATABASE);
  const [partner] = await createPartners(server, DATABASE, 1);
  const waiting = await useOfWaits({ server, databaseUrl, minutes }, cleanups);
  const { api } = await startRoles(['api', 'worker'], { databaseUrl }, cleanups);
  const bed = { server, api, keyId: partner!.keyId };
  const without = await useOver(bed, minutes);
  const cli = await startListening(api.apiUrl, partner!.key, cleanups);
  await sleep(SETTLE_MS);
  const connections: number[] = [];
  const counting = setInterval(() => connections.push(connectionsTo(api.apiUrl, cli.pid!)), 1_000);
  const listening = await useOver(bed, minutes);
  clearInterval(counting);
  if (cli.exitCode !== null) throw new Error(`esim listen exited with code ${cli.exitCode}`);
  const perMinute = (used: Used): number => used.transactions / minutes;
  return [
    {
      title: `esim listen on a service without events: ${minutes} min with it, after ${minutes} min without it`,
      rows: [
        row('calls, each one token of the rate limit', '', [listening.calls]),
        row('calls a minute', '', [listening.calls / minutes]),
        row('connections to the API, sampled each second', '', connections),
        row('transactions of the database a minute, without it', '', [perMinute(without)]),
        row('transactions of the database a minute, with it', '', [perMinute(listening)]),
        row('CPU of the API a minute, without it', 'ms', [cpuPerMinute(without, minutes)]),
        row('CPU of the API a minute, with it', 'ms', [cpuPerMinute(listening, minutes)]),
        row('memory of the command: RSS', 'MB', [memoryOf(cli.pid!)?.rssMb ?? null]),
      ],
      notes: ['A waiting call holds no database connection. The API polls once for all waiting calls.'],
    },
    waiting,
  ];
}

/**
 * Waits in an API without a worker: in Sandbox for the end of orders, in Live for events. Each call that ends after its
 * 25 s is sent again.
 */
async function useOfWaits(
  { server, databaseUrl, minutes }: { server: DatabaseServer; databaseUrl: string; minutes: number },
  cleanups: Cleanups,
): Promise<Section> {
  const { api } = await startRoles(['api'], { databaseUrl }, cleanups);
  const partners = await createPartners(server, DATABASE, WAITS / 2 / WAITS_PER_KEY);
  const live = await createPartners(server, DATABASE, partners.length, 'live');
  const urls = await Promise.all(
    partners.map(async ({ key }) => {
      const { data } = await sendOk<{ data: { id: string } }>(api.apiUrl + ORDERS_PATH, key, ORDER);
      return { key, url: `${api.apiUrl}${ORDERS_PATH}/${data.id}` };
    }),
  );
  const calls = [...urls, ...live.map(({ key }) => ({ key, url: `${api.apiUrl}/v1/events` }))];
  const bed = { server, api, keyId: partners[0]!.keyId };
  const without = await useOver(bed, minutes);
  const dispatcher = new Agent({ connections: WAITS, headersTimeout: 60_000 });
  let isOver = false;
  let [held, refused] = [0, 0];
  const keepWaiting = async ({ key, url }: (typeof calls)[number]): Promise<void> => {
    while (!isOver) {
      const headers = { authorization: `Bearer ${key}`, prefer: 'wait=25' };
      const answer = await request(url, { headers, dispatcher });
      await answer.body.dump();
      if (answer.headers['preference-applied'] === undefined) refused++;
      else held++;
    }
  };
  const waits = calls.flatMap((call) => Array.from({ length: WAITS_PER_KEY }, () => keepWaiting(call)));
  await sleep(SETTLE_MS);
  const used = await useOver(bed, minutes);
  isOver = true;
  await Promise.all(waits);
  await dispatcher.close();
  await api.stop();
  const perMinute = ({ transactions }: Used): number => transactions / minutes;
  const percent = ({ apiSeconds }: Used): number | null =>
    apiSeconds === null ? null : (apiSeconds / (minutes * 60)) * 100;
  return {
    title: `${waits.length} waiting calls on a service without events: ${minutes} min with them, after ${minutes} min without them`,
    rows: [
      row('calls held for 25 s', '', [held]),
      row('calls that were not held', '', [refused]),
      row('transactions of the database a minute, without them', '', [perMinute(without)]),
      row('transactions of the database a minute, with them', '', [perMinute(used)]),
      row('CPU of the API, without them', '% of a core', [percent(without)]),
      row('CPU of the API, with them', '% of a core', [percent(used)]),
    ],
    notes: [],
  };
}

/** @returns the use during the next `minutes` */
async function useOver(bed: Bed, minutes: number): Promise<Used> {
  const before = await usedSoFar(bed);
  await sleep(minutes * MINUTE_MS);
  const after = await usedSoFar(bed);
  const hasCpu = after.apiSeconds !== null && before.apiSeconds !== null;
  return {
    calls: after.calls - before.calls,
    transactions: after.transactions - before.transactions,
    apiSeconds: hasCpu ? after.apiSeconds - before.apiSeconds : null,
  };
}

async function usedSoFar({ server, api, keyId }: Bed): Promise<Used> {
  const [calls] = await server.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM api_calls WHERE key_id = $1',
    [keyId],
    DATABASE,
  );
  const [transactions] = await server.query<{ n: number }>(
    'SELECT (xact_commit + xact_rollback)::float8 AS n FROM pg_stat_database WHERE datname = $1',
    [DATABASE],
  );
  return { calls: calls!.n, transactions: transactions!.n, apiSeconds: cpuSecondsOf(api.pid) };
}

function cpuPerMinute({ apiSeconds }: Used, minutes: number): number | null {
  return apiSeconds === null ? null : (apiSeconds * 1_000) / minutes;
}

/** Starts the command with its own home directory. It forwards to a receiver that responds with 200. */
async function startListening(apiUrl: string, key: string, cleanups: Cleanups): Promise<ChildProcess> {
  const target = new URL(await startReceiver(cleanups)).host;
  const home = path.join(RESULTS, `home-${process.pid}`);
  const child = spawn(process.execPath, [CLI, 'listen', '--forward-to', target], {
    env: { PATH: process.env['PATH'], HOME: home, ESIM_BASE_URL: apiUrl, ESIM_API_KEY: key },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  cleanups.stopping({
    stop: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGINT');
      await once(child, 'exit');
    },
  });
  return child;
}

/** @returns the process's established TCP connections to the API; 0 without /proc */
function connectionsTo(apiUrl: string, pid: number): number {
  const port = Number(new URL(apiUrl).port).toString(16).toUpperCase().padStart(4, '0');
  try {
    const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1);
    // The columns are local address, remote address and state; 01 is established. Only the command connects to this
    // port.
    return lines.filter((line) => new RegExp(`^\\s*\\d+: \\S+ \\S+:${port} 01 `).test(line)).length;
  } catch {
    return 0;
  }
}
