import { spawn, spawnSync } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import type { Cleanups } from './cleanups.js';
import { costPerOrder, cpuOf, explain, type LifeBed, prepareLife } from './life/life-bed.js';
import type { BenchOptions } from './options.js';
import { row, type Row, type Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';
import type { ServiceRole } from './service/service-process.js';

/** Orders between POST and webhook: enough that no process of any layout idles. */
const OPEN_ORDERS = 128;

/** Which processes share the work; the first is what the others are compared with. */
const LAYOUTS: readonly {
  readonly name: string;
  readonly roles: readonly ServiceRole[];
  readonly onRedis: boolean;
}[] = [
  { name: '1 api, 1 worker', roles: ['api', 'worker'], onRedis: false },
  { name: '1 api, 2 workers', roles: ['api', 'worker', 'worker'], onRedis: false },
  { name: '2 apis, 1 worker', roles: ['api', 'api', 'worker'], onRedis: false },
  { name: '2 apis, 2 workers', roles: ['api', 'api', 'worker', 'worker'], onRedis: false },
  { name: '1 api, 1 worker, queues and limits in Redis', roles: ['api', 'worker'], onRedis: true },
];

interface Measured {
  readonly rates: number[];
  readonly costs: ReadonlyMap<string, number>[];
}

/**
 * What a second process of a role, or Redis, gives and costs. All layouts are there all the time, each with a database of
 * its own on one server, and take turns: what the machine does besides meets each of them.
 */
export async function benchRoles(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start({ max_connections: 400 }));
  const redis = await startRedis(cleanups);
  const beds = new Map<string, LifeBed>();
  for (const [index, { name, roles, onRedis }] of LAYOUTS.entries()) {
    if (onRedis && redis === null) continue;
    const layout = { server, database: `bench_roles_${index}`, roles, profile: options.profile };
    const more = onRedis ? { env: { REDIS_URL: redis!.url }, besides: new Map([['Redis', redis!.pid]]) } : {};
    beds.set(name, await prepareLife({ ...layout, ...more }, cleanups));
  }
  const measured = await measureInTurn(beds, options);
  return [
    {
      title:
        'Processes: POST /v1/orders sent until order.issued received, on two cores that all processes share',
      rows: [...measured].flatMap(([name, of]) => rowsOf(name, of, measured)),
      notes: [
        `${OPEN_ORDERS} orders under way at a time, one partner; caller, receiver and database share the machine, so that a`,
        'second process finds no core of its own: the figures say what it costs, not what it would give on one.',
        ...(redis === null ? ['Redis was not measured: there is no redis-server on this machine.'] : []),
      ],
    },
  ];
}

async function measureInTurn(
  beds: ReadonlyMap<string, LifeBed>,
  { rounds, warmupMs, roundMs }: BenchOptions,
): Promise<ReadonlyMap<string, Measured>> {
  const measured = new Map<string, Measured>(
    [...beds.keys()].map((name) => [name, { rates: [], costs: [] }]),
  );
  for (const bed of beds.values()) {
    bed.connect();
    await bed.life.runClosed(OPEN_ORDERS, warmupMs, roundMs);
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, bed] of beds) {
      const before = cpuOf(bed);
      const report = await bed.life
        .runClosed(OPEN_ORDERS, warmupMs, roundMs)
        .catch((error: unknown) => explain(bed, error));
      const of = measured.get(name)!;
      of.costs.push(costPerOrder(before, cpuOf(bed), report.inAll));
      of.rates.push(report.perSecond);
      process.stderr.write(`${name} ${round + 1}/${rounds}: ${Math.round(report.perSecond)} orders/s\n`);
    }
  }
  return measured;
}

function rowsOf(
  name: string,
  { rates, costs }: Measured,
  all: ReadonlyMap<string, Measured>,
): readonly Row[] {
  const [first] = all.values();
  const sums = costs.map((cost) => [...cost.values()].reduce((a, b) => a + b, 0));
  return [
    row(`${name}: orders from POST to webhook`, '/s', rates),
    row(
      `${name}: of the first layout`,
      'x',
      rates.map((rate, round) => rate / first!.rates[round]!),
    ),
    ...[...costs[0]!.keys()].map((process) =>
      row(
        `${name}: CPU an order, ${process}`,
        'ms',
        costs.map((cost) => cost.get(process)!),
      ),
    ),
    row(`${name}: CPU an order, all processes`, 'ms', sums),
  ];
}

/** A Redis that keeps nothing on disk; null where there is none. */
async function startRedis(
  cleanups: Cleanups,
): Promise<{ readonly url: string; readonly pid: number } | null> {
  if (spawnSync('redis-server', ['--version']).error) return null;
  const port = await freePort();
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: 'ignore',
    },
  );
  cleanups.stopping({
    stop: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  });
  const url = `redis://127.0.0.1:${port}`;
  const client = new Redis(url, { retryStrategy: () => 100 });
  client.on('error', () => undefined);
  await client.ping();
  client.disconnect();
  return { url, pid: child.pid! };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
