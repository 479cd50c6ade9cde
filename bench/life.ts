import { randomBytes } from 'node:crypto';
import type { Cleanups } from './cleanups.js';
import { captureOrder, ORDERS_PATH } from './limits/captured-order.js';
import { RawTransactions } from './limits/raw-transactions.js';
import { type LifeReport, OrderLife } from './life/order-life.js';
import type { BenchOptions } from './options.js';
import { row, type Row, type Section } from './report/report.js';
import { quantile } from './report/statistics.js';
import { DatabaseServer } from './service/database-server.js';
import { type BenchPartner, createPartners } from './service/partners.js';
import { cpuSecondsOf, cpuSecondsOfTree } from './service/process-facts.js';
import { ServiceProcess, type ServiceRole } from './service/service-process.js';

/** Orders between POST and webhook of the closed loop: enough that nothing idles, few enough that nothing piles up. */
const OPEN_ORDERS = 128;
const BURST = 100;
const POOL_MAX = 16;
/** Parts of what was sustained, at which the latency is measured. */
const LOADS = [0.1, 0.25, 0.5, 0.65, 0.8, 0.9, 1] as const;

/** Which processes share the work. */
const LAYOUTS: Readonly<Record<string, readonly ServiceRole[]>> = {
  'all in one': ['all'],
  'roles apart': ['api', 'worker'],
};

interface Bed {
  readonly server: DatabaseServer;
  readonly database: string;
  readonly databaseUrl: string;
  readonly partner: BenchPartner;
  readonly services: ReadonlyMap<ServiceRole, ServiceProcess>;
  readonly life: OrderLife;
}

/**
 * From POST to the receiver's 200: what two cores sustain, how late it is at parts and all of that, and what an
 * order costs each process, which is what capacity is computed from.
 */
export async function benchLife(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start());
  const limit = await rawAcceptance(server, options, cleanups);
  const sections: Section[] = [];
  for (const [name, roles] of Object.entries(LAYOUTS)) {
    const bed = await prepare(server, `bench_life_${roles.length}`, roles, options, cleanups);
    sections.push(
      await measureLayout(name, bed, limit, options).catch((error: unknown) => explain(bed, error)),
    );
    for (const service of bed.services.values()) await service.stop();
    await bed.life.stop();
  }
  return sections;
}

async function measureLayout(
  name: string,
  bed: Bed,
  limit: () => Promise<number>,
  options: BenchOptions,
): Promise<Section> {
  const { warmupMs, roundMs } = options;
  await bed.life.runClosed(OPEN_ORDERS, warmupMs, roundMs);
  const sustained: LifeReport[] = [];
  const raw: number[] = [];
  const bursts: number[] = [];
  const costs: ReadonlyMap<string, number>[] = [];
  for (let round = 0; round < options.rounds; round++) {
    raw.push(await limit());
    const before = cpuOf(bed);
    const report = await bed.life.runClosed(OPEN_ORDERS, warmupMs, roundMs);
    costs.push(costPerOrder(before, cpuOf(bed), report.inAll));
    sustained.push(report);
    bursts.push(await bed.life.runBurst(BURST));
    process.stderr.write(
      `${name} ${round + 1}/${options.rounds}: ${Math.round(report.perSecond)} orders/s\n`,
    );
  }
  const rates = sustained.map(({ perSecond }) => perSecond);
  const rate = quantile(
    [...rates].sort((a, b) => a - b),
    0.5,
  );
  const rows: Row[] = [
    row('orders from POST to webhook, sustained', '/s', rates),
    row(
      'the same / raw loop of the acceptance alone',
      'x',
      rates.map((one, index) => one / raw[index]!),
    ),
    ...[...costs[0]!.keys()].map((process) =>
      row(
        `CPU an order, ${process}`,
        'ms',
        costs.map((cost) => cost.get(process)!),
      ),
    ),
    row(
      'CPU an order, all processes',
      'ms',
      costs.map((cost) => [...cost.values()].reduce((a, b) => a + b, 0)),
    ),
    row(`${BURST} orders at once: until the last webhook`, 'ms', bursts),
  ];
  rows.push(...(await measureLoads(bed, rate, options)));
  return {
    title: `Life of an order, ${name}: POST /v1/orders sent until order.issued received`,
    rows,
    notes: [
      `${OPEN_ORDERS} orders under way at a time, one partner, one endpoint that answers 200 at once; caller and receiver`,
      'share the machine. The raw loop repeats the SQL of one acceptance, prepared and in one round trip.',
    ],
  };
}

/** Every load in turn, and all of them as often as there are rounds: what the machine does besides meets each. */
async function measureLoads(
  bed: Bed,
  rate: number,
  { rounds, warmupMs, roundMs }: BenchOptions,
): Promise<readonly Row[]> {
  const reports = new Map<number, LifeReport[]>(LOADS.map((load) => [load, []]));
  for (let round = 0; round < rounds; round++)
    for (const load of LOADS) reports.get(load)!.push(await bed.life.runOpen(rate * load, warmupMs, roundMs));
  return [...reports].flatMap(([load, of]) => {
    const at = `at ${Math.round(load * 100)} % of that`;
    const latency = (part: number): number[] => of.map(({ latencies }) => quantile(latencies, part));
    return [
      row(`${at}: p50`, 'ms', latency(0.5)),
      row(`${at}: p95`, 'ms', latency(0.95)),
      row(
        `${at}: orders open at half, at the end`,
        '',
        of.flatMap(({ openAtHalf, openAtEnd }) => [openAtHalf, openAtEnd]),
      ),
    ];
  });
}

/** What the database says of orders whose webhook stayed out. @throws Error always */
async function explain({ server, database }: Bed, error: unknown): Promise<never> {
  const count = (sql: string): Promise<object[]> => server.query(sql, [], database);
  const facts = [
    await count(
      `SELECT status, upstream_attempts, left(last_error, 80) AS error, count(*)::int FROM orders
       WHERE status <> 'issued' GROUP BY 1, 2, 3`,
    ),
    await count(
      `SELECT status, attempt_count AS attempts, last_outcome AS outcome, last_error AS error, count(*)::int
       FROM webhook_deliveries WHERE status <> 'delivered' GROUP BY 1, 2, 3, 4`,
    ),
    await count('SELECT enabled, blocked_until, consecutive_blocks, ramp_window FROM webhook_endpoints'),
  ];
  throw new Error(`${(error as Error).message}: ${JSON.stringify(facts)}`, { cause: error });
}

async function prepare(
  server: DatabaseServer,
  database: string,
  roles: readonly ServiceRole[],
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<Bed> {
  const databaseUrl = await server.createDatabase(database);
  const [partner] = await createPartners(server, database, 1);
  const life = cleanups.stopping(await OrderLife.start());
  const services = new Map<ServiceRole, ServiceProcess>();
  const env = {
    WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    DATABASE_POOL_MAX: String(POOL_MAX),
    // The worker opens what the admin role seals.
    SECRETS_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  };
  const admin = await ServiceProcess.start({ role: 'admin', databaseUrl, env });
  await register(admin, partner!, life.receiverUrl);
  await admin.stop();
  for (const role of roles) {
    const profile = options.profile ? `${role}-life` : undefined;
    services.set(role, cleanups.stopping(await ServiceProcess.start({ role, databaseUrl, env, profile })));
  }
  life.connect(services.get(roles[0]!)!.apiUrl, partner!.key);
  return { server, database, databaseUrl, partner: partner!, services, life };
}

async function register(admin: ServiceProcess, { partnerId }: BenchPartner, url: string): Promise<void> {
  const path = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  const answer = await fetch(admin.adminUrl + path, {
    method: 'POST',
    body: JSON.stringify({ mode: 'sandbox', url }),
    headers: { authorization: `Bearer ${admin.adminToken}`, 'content-type': 'application/json' },
  });
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
}

/** Repeats the SQL of one acceptance; answers how many a second. */
async function rawAcceptance(
  server: DatabaseServer,
  { connections, warmupMs, roundMs }: BenchOptions,
  cleanups: Cleanups,
): Promise<() => Promise<number>> {
  const database = 'bench_life_raw';
  const databaseUrl = await server.createDatabase(database);
  const [partner] = await createPartners(server, database, 1);
  const env = { DATABASE_POOL_MAX: String(POOL_MAX) };
  const bed = {
    server,
    database,
    databaseUrl,
    env,
    partner: partner!,
    body: '{"package_id":"pkg_fr_1gb_7d"}',
  };
  const statements = await captureOrder(bed, cleanups);
  process.stderr.write(`the raw loop repeats ${statements.length} statements of POST ${ORDERS_PATH}\n`);
  const raw = cleanups.stopping(new RawTransactions());
  const plan = { databaseUrl, statements, owners: [partner!], poolMax: POOL_MAX };
  return async () =>
    (await raw.run({ ...plan, concurrency: connections, warmupMs, durationMs: roundMs })).perSecond;
}

/** CPU seconds so far, by process; without /proc nothing. */
function cpuOf({ services, server }: Bed): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const [role, { pid }] of services) {
    const seconds = cpuSecondsOf(pid);
    if (seconds !== null) times.set(role === 'all' ? 'service' : role, seconds);
  }
  const database = cpuSecondsOfTree(server.pid);
  if (database !== null) times.set('PostgreSQL', database);
  return times;
}

function costPerOrder(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  orders: number,
): ReadonlyMap<string, number> {
  return new Map(
    [...after].map(([name, seconds]) => [name, ((seconds - before.get(name)!) / orders) * 1_000]),
  );
}
