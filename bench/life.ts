/**
 * `npm run bench -- life`: an order from POST /v1/orders to the receiver's 200 for its `order.issued`. Measures the
 * orders per second that two cores sustain, the latency at fractions of that rate, and each process's CPU time per
 * order. First all roles run in one process, then each in its own.
 * Upper bound: a raw loop that repeats only the SQL that accepts an order, in the same rounds.
 * Read the CPU per order for capacity, and the latency at 50 % and 80 %. At 100 %, a queue grows by definition.
 *
 * `--part processes` compares a second worker, a second API and Redis with one of each. `--against DIR` compares this
 * checkout with another checkout that is already built. Both keep all setups running and load them in turn. Ratios are
 * relative to the first setup.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from '../chaos/stores.js';
import { BURST, type LifeReport, OPEN_ORDERS, OrderLife } from './life-orders.js';
import type { BenchOptions } from './main.js';
import { captureOrder } from './shared/captured-order.js';
import { Child, type Cleanups } from './shared/child.js';
import { describeProfile } from './shared/cpu-profile.js';
import { DatabaseServer } from './shared/database-server.js';
import { ORDERS_PATH } from './shared/http.js';
import type { LoadApi } from './shared/load.child.js';
import { cpuSecondsOf, cpuSecondsOfTree } from './shared/machine.js';
import { createByAdmin, createEndpoint, createPartners } from './shared/partners.js';
import { figuresOf, quantile, RESULTS, ROOT, row, type Row, say, type Section } from './shared/report.js';
import { ServiceProcess, type ServiceRole } from './shared/service-process.js';
import { describeStatements, STATEMENT_SETTINGS, StatementCounts } from './shared/statement-counts.js';

const POOL_MAX = 16;
/** Fractions of the sustained rate at which the latency is measured. */
const LOADS = [0.1, 0.25, 0.5, 0.65, 0.8, 0.9, 1] as const;
/** Up to half of the sustained rate, 95 of 100 webhooks should arrive within a second. */
const HALF_LOAD_LIMIT_MS = 1_000;
/** An idle session reports its statistics after ten seconds. */
const STATISTICS_LATE_MS = 11_000;
/** Orders per second for the latency of a comparison. Every setup sustains more. */
const CALM_RATES = [50, 200] as const;

const LAYOUTS: Readonly<Record<string, readonly ServiceRole[]>> = {
  'all in one': ['all'],
  'roles apart': ['api', 'worker'],
};
/** The first entry is the baseline. */
const PROCESSES: Readonly<Record<string, readonly ServiceRole[]>> = {
  '1 api, 1 worker': ['api', 'worker'],
  '1 api, 2 workers': ['api', 'worker', 'worker'],
  '2 apis, 1 worker': ['api', 'api', 'worker'],
  '2 apis, 2 workers': ['api', 'api', 'worker', 'worker'],
};
const ON_REDIS = '1 api, 1 worker, queues and limits in Redis';

/** Milliseconds of CPU time per order, by process. */
type Costs = ReadonlyMap<string, number>;

/** One partner that places orders, and the processes that handle them. */
interface LifeBed {
  readonly life: OrderLife;
  /** Opens the caller's connections. */
  connect(): Promise<void>;
  /** CPU seconds used so far, by process. */
  cpu(): Costs;
  /** @returns rows that explain why webhooks are missing */
  explain(): Promise<unknown>;
  stop(): Promise<void>;
}

export async function benchLife(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  if (options.against !== null) return [await compareVersions(options.against, options, cleanups)];
  if (options.part === 'processes') return [await compareProcesses(options, cleanups)];
  const server = cleanups.stopping(await DatabaseServer.start(options.profile ? STATEMENT_SETTINGS : {}));
  const limit = await rawAcceptance(server, options, cleanups);
  const sections: Section[] = [];
  for (const [name, roles] of Object.entries(LAYOUTS)) {
    const database = `bench_life_${roles.length}`;
    const bed = await openBed({ server, database, roles, profile: options.profile }, cleanups);
    sections.push(await measureLayout(name, bed, limit, options, { server, database }));
    await bed.stop();
    if (options.profile) sections.push(profileOf(name, roles));
  }
  return sections;
}

/** A process writes its profile when it stops. */
function profileOf(layout: string, roles: readonly ServiceRole[]): Section {
  const notes = roles.flatMap((role) => [
    `${nameOf(role)}:`,
    ...describeProfile(path.join(RESULTS, `${nameOf(role)}-life.cpuprofile`)),
  ]);
  return { title: `CPU profile, ${layout}: own time, without idle time`, rows: [], notes };
}

async function measureLayout(
  name: string,
  bed: LifeBed,
  limit: () => Promise<number>,
  options: BenchOptions,
  { server, database }: { server: DatabaseServer; database: string },
): Promise<Section> {
  const times = timesOf(options);
  await bed.connect();
  await bed.life.runClosed(times);
  const rounds: { report: LifeReport; raw: number; costs: Costs; burstMs: number }[] = [];
  const statements = options.profile ? await StatementCounts.open(server, database) : null;
  await statements?.reset();
  for (let nth = 1; nth <= options.rounds; nth++) {
    const raw = await limit();
    const [report, costs] = await costOf(bed, () => bed.life.runClosed(times));
    rounds.push({ report, raw, costs, burstMs: await bed.life.runBurst() });
    say(`${name} ${nth}/${options.rounds}: ${Math.round(report.perSecond)} orders/s`);
  }
  const orders = rounds.reduce((sum, { report }) => sum + report.inAll + BURST, 0);
  const expensive = statements ? describeStatements(await statements.read(), orders, 'order') : [];
  const figure = figuresOf(rounds);
  const sustained = figure('orders from POST to webhook, sustained', '/s', ({ report }) => report.perSecond);
  return {
    title: `Life of an order, ${name}: POST ${ORDERS_PATH} sent until order.issued received`,
    rows: [
      sustained,
      figure('the same / raw loop of the acceptance alone', 'x', ({ report, raw }) => report.perSecond / raw),
      ...costRows(rounds.map(({ costs }) => costs)),
      figure(`${BURST} orders at once: until the last webhook`, 'ms', ({ burstMs }) => burstMs),
      row(`WAL syncs an order at ${CALM_RATES[0]} orders a second`, '', [
        await syncsPerOrder(server, bed, options),
      ]),
      ...(await measureLoads(bed, sustained.median, options)),
    ],
    notes: [
      `${OPEN_ORDERS} orders in flight, one partner, one endpoint that responds with 200 at once. Caller and receiver`,
      'share the machine. The raw loop repeats the SQL of one acceptance as prepared statements in one round trip.',
      ...expensive,
    ],
  };
}

/** Commits of the service that wait for the disk, counted at a rate at which few of them share a sync. */
async function syncsPerOrder(
  server: DatabaseServer,
  { life }: LifeBed,
  options: BenchOptions,
): Promise<number> {
  const syncs = async (): Promise<number> => {
    await sleep(STATISTICS_LATE_MS);
    const [found] = await server.query<{ n: number }>(
      `SELECT sum(fsyncs)::int AS n FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'`,
    );
    return found!.n;
  };
  const before = await syncs();
  const { inAll } = await life.runOpen(CALM_RATES[0], timesOf(options));
  return ((await syncs()) - before) / inAll;
}

/** Each round measures all loads, so that a disturbance of the machine affects all of them. */
async function measureLoads(bed: LifeBed, rate: number, options: BenchOptions): Promise<readonly Row[]> {
  const reports = new Map<number, LifeReport[]>(LOADS.map((load) => [load, []]));
  for (let round = 0; round < options.rounds; round++)
    for (const load of LOADS) reports.get(load)!.push(await bed.life.runOpen(rate * load, timesOf(options)));
  return [...reports].flatMap(([load, of]) => {
    const figure = figuresOf(of, `at ${Math.round(load * 100)} % of that: `);
    const goal = load <= 0.5 ? { limit: HALF_LOAD_LIMIT_MS } : {};
    const open = of.flatMap(({ openAtHalf, openAtEnd }) => [openAtHalf, openAtEnd]);
    return [
      figure('p50', 'ms', ({ latencies }) => quantile(latencies, 0.5)),
      figure('p95', 'ms', ({ latencies }) => quantile(latencies, 0.95), goal),
      row(`at ${Math.round(load * 100)} % of that: orders open at half, at the end`, '', open),
    ];
  });
}

/**
 * Sets up a loop that repeats the SQL of one accepted order.
 * @returns a function that runs one round and returns its transactions per second
 */
async function rawAcceptance(
  server: DatabaseServer,
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<() => Promise<number>> {
  const database = 'bench_life_raw';
  const databaseUrl = await server.createDatabase(database);
  const [partner] = await createPartners(server, database, 1);
  const env = { DATABASE_POOL_MAX: String(POOL_MAX) };
  const statements = await captureOrder({ server, database, env, partner: partner! }, cleanups);
  say(`the raw loop repeats ${statements.length} statements of POST ${ORDERS_PATH}`);
  const raw = cleanups.stopping(Child.start<LoadApi>(new URL('./shared/load.child.js', import.meta.url)));
  const plan = { databaseUrl, statements, owners: [partner!], poolMax: POOL_MAX };
  const load = { ...plan, ...timesOf(options), concurrency: options.connections };
  return async () => (await raw.call('transactions', load)).perSecond;
}

async function compareProcesses(options: BenchOptions, cleanups: Cleanups): Promise<Section> {
  const server = cleanups.stopping(await DatabaseServer.start({ max_connections: 400 }));
  const redis = await RedisServer.start().catch(() => null);
  const beds = new Map<string, LifeBed>();
  const open = async (name: string, roles: readonly ServiceRole[], onRedis: RedisServer | null) => {
    const database = `bench_processes_${beds.size}`;
    beds.set(name, await openBed({ server, database, roles, profile: false, redis: onRedis }, cleanups));
  };
  for (const [name, roles] of Object.entries(PROCESSES)) await open(name, roles, null);
  if (redis) await open(ON_REDIS, ['api', 'worker'], cleanups.stopping(redis));
  return {
    title: `Processes: POST ${ORDERS_PATH} sent until order.issued received, on cores that all processes share`,
    rows: await compare(beds, options),
    notes: [
      `${OPEN_ORDERS} orders in flight, one partner. Caller, receiver and database share the machine, so a second process`,
      'gets no core of its own. The figures show its overhead, not what it would add on another core.',
      ...(redis ? [] : ['Redis was not measured: redis-server is not installed.']),
    ],
  };
}

/** @throws Error when `against` is not a built checkout */
async function compareVersions(against: string, options: BenchOptions, cleanups: Cleanups): Promise<Section> {
  const beds = new Map([
    ['other', await openVersion(path.resolve(against), cleanups)],
    ['this', await openVersion(ROOT, cleanups)],
  ]);
  return {
    title: `This checkout compared with ${against}: POST ${ORDERS_PATH} until order.issued, all in one, each with its own PostgreSQL`,
    rows: await compare(beds, options),
    notes: [
      `${OPEN_ORDERS} orders in flight, one partner, one endpoint. Caller and receiver share the machine.`,
      'Both run throughout, but only the measured one receives calls. The order alternates between rounds.',
    ],
  };
}

interface Compared {
  readonly perSecond: number;
  readonly costs: Costs;
  readonly burstMs: number;
  readonly calm: readonly LifeReport[];
}

/** Loads all beds in turn and compares each with the first. Drops the results of a warm-up round. */
async function compare(beds: ReadonlyMap<string, LifeBed>, options: BenchOptions): Promise<Row[]> {
  const rounds = new Map<string, Compared[]>([...beds.keys()].map((name) => [name, []]));
  for (let nth = 0; nth <= options.rounds; nth++)
    for (const [name, bed] of nth % 2 === 0 ? beds : [...beds].reverse()) {
      await bed.connect();
      const [{ perSecond }, costs] = await costOf(bed, () => bed.life.runClosed(timesOf(options)));
      const burstMs = await bed.life.runBurst();
      const calm: LifeReport[] = [];
      for (const rate of CALM_RATES) calm.push(await bed.life.runOpen(rate, timesOf(options)));
      bed.life.disconnect();
      if (nth > 0) rounds.get(name)!.push({ perSecond, costs, burstMs, calm });
      say(`${name} ${nth}/${options.rounds}: ${Math.round(perSecond)} orders/s`);
    }
  const [first] = rounds.values();
  return [...rounds].flatMap(([name, of]) => {
    const figure = figuresOf(of, `${name}: `);
    const ofFirst = (what: string, value: (one: Compared) => number): Row[] =>
      of === first
        ? []
        : [
            row(
              `${name}: ${what} / first`,
              'x',
              of.map((one, nth) => value(one) / value(first![nth]!)),
            ),
          ];
    return [
      figure('orders from POST to webhook', '/s', ({ perSecond }) => perSecond),
      ...ofFirst('orders', ({ perSecond }) => perSecond),
      ...costRows(
        of.map(({ costs }) => costs),
        `${name}: `,
      ),
      ...ofFirst('CPU per order', ({ costs }) => sumOf(costs)),
      figure(`${BURST} orders at once`, 'ms', ({ burstMs }) => burstMs),
      ...CALM_RATES.flatMap((rate, nth) => [
        figure(`${rate} orders a second: p50`, 'ms', ({ calm }) => quantile(calm[nth]!.latencies, 0.5)),
        figure(`${rate} orders a second: p95`, 'ms', ({ calm }) => quantile(calm[nth]!.latencies, 0.95)),
      ]),
    ];
  });
}

function timesOf({ warmupMs, roundMs }: BenchOptions) {
  return { warmupMs, durationMs: roundMs };
}

/**
 * Runs a load and divides the processes' CPU time by the number of orders.
 * @throws Error that includes the state of the bed when the load fails
 */
async function costOf(bed: LifeBed, run: () => Promise<LifeReport>): Promise<[LifeReport, Costs]> {
  const before = bed.cpu();
  const report = await run().catch(async (error: unknown) => {
    const facts = JSON.stringify(await bed.explain());
    throw new Error(`${(error as Error).message}: ${facts}`, { cause: error });
  });
  const cost = (name: string, seconds: number): number =>
    ((seconds - before.get(name)!) / report.inAll) * 1_000;
  return [report, new Map([...bed.cpu()].map(([name, seconds]) => [name, cost(name, seconds)]))];
}

function costRows(costs: readonly Costs[], prefix = ''): Row[] {
  const figure = figuresOf(costs, prefix);
  return [
    ...[...costs[0]!.keys()].map((name) => figure(`CPU an order, ${name}`, 'ms', (one) => one.get(name)!)),
    figure('CPU an order, all processes', 'ms', sumOf),
  ];
}

function sumOf(costs: Costs): number {
  return [...costs.values()].reduce((a, b) => a + b, 0);
}

/** @returns a process's name in the report: its role, numbered from the second process on */
function nameOf(role: ServiceRole, taken = 0): string {
  return `${role === 'all' ? 'service' : role}${taken === 0 ? '' : ` ${taken + 1}`}`;
}

interface Layout {
  readonly server: DatabaseServer;
  readonly database: string;
  /** Lists a role once per process. */
  readonly roles: readonly ServiceRole[];
  readonly profile: boolean;
  readonly redis?: RedisServer | null;
}

/** Starts a layout's processes on their own database. Calls are spread across all processes that serve the API. */
async function openBed(
  { server, database, roles, profile, redis }: Layout,
  cleanups: Cleanups,
): Promise<LifeBed> {
  const databaseUrl = await server.createDatabase(database);
  const [partner] = await createPartners(server, database, 1);
  const life = await OrderLife.start(cleanups);
  const env = { DATABASE_POOL_MAX: String(POOL_MAX), ...(redis ? { REDIS_URL: redis.url } : {}) };
  const admin = await ServiceProcess.start({ role: 'admin', databaseUrl, env });
  await createEndpoint(admin, partner!.partnerId, life.receiverUrl);
  await admin.stop();
  const services = new Map<string, ServiceProcess>();
  for (const role of roles) {
    const taken = [...services.keys()].filter((name) => name.startsWith(nameOf(role))).length;
    const name = nameOf(role, taken);
    const options = { role, databaseUrl, env, profile: profile ? `${name}-life` : undefined };
    services.set(name, cleanups.stopping(await ServiceProcess.start(options)));
  }
  const apis = [...services].filter(([name]) => !name.startsWith('worker')).map(([, { apiUrl }]) => apiUrl);
  const times = (): (readonly [string, number | null])[] => [
    ...[...services].map(([name, { pid }]) => [name, cpuSecondsOf(pid)] as const),
    ...(redis ? [['Redis', cpuSecondsOf(redis.pid)] as const] : []),
    ['PostgreSQL', cpuSecondsOfTree(server.pid)],
  ];
  return {
    life,
    connect: () => life.connect(apis, partner!.key),
    // Without /proc there are no figures.
    cpu: () => new Map(times().filter((one): one is readonly [string, number] => one[1] !== null)),
    explain: () =>
      server.query(
        `SELECT 'order' AS of, status, left(last_error, 80) AS error, count(*)::int FROM orders
         WHERE status <> 'issued' GROUP BY 2, 3
         UNION ALL SELECT 'delivery', status, last_outcome || ' ' || last_error, count(*)::int FROM webhook_deliveries
         WHERE status <> 'delivered' GROUP BY 2, 3
         UNION ALL SELECT 'endpoint', enabled::text, blocked_until::text, consecutive_blocks FROM webhook_endpoints`,
        [],
        database,
      ),
    stop: async () => {
      life.disconnect();
      for (const service of services.values()) await service.stop();
    },
  };
}

/** Starts a build of the service as `npm start` does: all roles in one process, with its own PostgreSQL. */
async function openVersion(root: string, cleanups: Cleanups): Promise<LifeBed> {
  if (!existsSync(path.join(root, 'dist/src/main.js')))
    throw new Error(`${root} is not built. Run npm ci and npm run build there.`);
  const life = await OrderLife.start(cleanups);
  const data = path.join(RESULTS, `version-${path.basename(root)}-${process.pid}`);
  cleanups.stopping({ stop: () => rm(data, { recursive: true, force: true }) });
  const service = cleanups.stopping(
    await ServiceProcess.start({ role: 'embedded', root, env: { DATA_DIR: data } }),
  );
  const partnerId = (await createByAdmin(service, '/internal/v1/partners', { name: 'Bench' })).id!;
  const keys = `/internal/v1/partners/${partnerId}/api-keys`;
  const { key } = await createByAdmin(service, keys, { mode: 'sandbox' });
  await createEndpoint(service, partnerId, life.receiverUrl);
  return {
    life,
    connect: () => life.connect([service.apiUrl], key!),
    cpu: () => {
      const ofNode = cpuSecondsOf(service.pid) ?? NaN;
      const ofBoth = cpuSecondsOfTree(service.pid) ?? NaN;
      return new Map(Object.entries({ 'Node.js': ofNode, PostgreSQL: ofBoth - ofNode }));
    },
    explain: () => Promise.resolve(null),
    stop: () => service.stop(),
  };
}
