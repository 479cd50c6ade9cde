import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanups } from './cleanups.js';
import type { BenchOptions } from './options.js';
import { ROOT } from './places.js';
import { row, type Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';
import { createPartners } from './service/partners.js';
import { cpuSecondsOf, memoryOf } from './service/process-facts.js';
import { ServiceProcess } from './service/service-process.js';

const DATABASE = 'bench_listen';
const CLI = path.join(ROOT, 'cli/dist/main.js');
const MINUTE_MS = 60_000;
/** Once the command has read its first pages and waits. */
const SETTLE_MS = 5_000;

interface Bed {
  readonly server: DatabaseServer;
  readonly api: ServiceProcess;
  readonly keyId: string;
}

/** What has been used so far; CPU in seconds, null where there is no /proc. */
interface Used {
  readonly calls: number;
  readonly transactions: number;
  readonly apiSeconds: number | null;
}

/** What `esim listen` costs a service at which nothing happens: calls (one token each), connections, transactions. */
export async function benchListen(
  { minutes }: BenchOptions,
  cleanups: Cleanups,
): Promise<readonly Section[]> {
  if (!existsSync(CLI)) throw new Error(`${path.relative(ROOT, CLI)} is missing: npm run build:packages`);
  const server = cleanups.stopping(await DatabaseServer.start());
  const databaseUrl = await server.createDatabase(DATABASE);
  const [partner] = await createPartners(server, DATABASE, 1);
  const api = cleanups.stopping(await ServiceProcess.start({ role: 'api', databaseUrl }));
  cleanups.stopping(await ServiceProcess.start({ role: 'worker', databaseUrl }));
  const bed = { server, api, keyId: partner!.keyId };
  const without = await useOver(bed, minutes);
  const cli = await startListening(api.apiUrl, partner!.key, cleanups);
  await sleep(SETTLE_MS);
  const connections: number[] = [];
  const counting = setInterval(() => connections.push(connectionsTo(api.apiUrl, cli.pid!)), 1_000);
  const listening = await useOver(bed, minutes);
  clearInterval(counting);
  if (cli.exitCode !== null) throw new Error(`esim listen ended with ${cli.exitCode}`);
  const perMinute = (used: Used): number => used.transactions / minutes;
  return [
    {
      title: `esim listen at a service without events, ${minutes} min, after as long without it`,
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
      notes: [
        'A wait in progress holds no connection of the database; the API looks once for all that wait.',
      ],
    },
  ];
}

/** What the next `minutes` use. */
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

/** The command, forwarding to a server that answers 200, with a home of its own. */
async function startListening(apiUrl: string, key: string, cleanups: Cleanups): Promise<ChildProcess> {
  const target = createServer((request, response) => void request.resume().on('end', () => response.end()));
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  const { port } = target.address() as AddressInfo;
  const home = path.join(ROOT, 'bench/results', `home-${process.pid}`);
  const child = spawn(process.execPath, [CLI, 'listen', '--forward-to', `127.0.0.1:${port}`], {
    env: { PATH: process.env['PATH'], HOME: home, ESIM_BASE_URL: apiUrl, ESIM_API_KEY: key },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  cleanups.stopping({
    stop: async () => {
      target.close();
      if (child.exitCode !== null) return;
      child.kill('SIGINT');
      await once(child, 'exit');
    },
  });
  return child;
}

/** Established TCP connections of a process to the API; 0 where there is no /proc. */
function connectionsTo(apiUrl: string, pid: number): number {
  const port = Number(new URL(apiUrl).port).toString(16).toUpperCase().padStart(4, '0');
  try {
    const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1);
    // Local address, remote address, state: 01 is established. Only the command calls this port.
    return lines.filter((line) => new RegExp(`^\\s*\\d+: \\S+ \\S+:${port} 01 `).test(line)).length;
  } catch {
    return 0;
  }
}
