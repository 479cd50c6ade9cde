import path from 'node:path';
import type { Cleanups } from './cleanups.js';
import { captureOrder, ORDERS_PATH } from './limits/captured-order.js';
import { RawTransactions } from './limits/raw-transactions.js';
import { costPerOrder, cpuOf, explain, type LifeBed, POOL_MAX, prepareLife } from './life/life-bed.js';
import { BURST, type LifeReport, OPEN_ORDERS } from './life/order-life.js';
import type { BenchOptions } from './options.js';
import { RESULTS } from './places.js';
import { describeProfile } from './report/cpu-profile.js';
import { row, type Row, type Section } from './report/report.js';
import { quantile } from './report/statistics.js';
import { DatabaseServer } from './service/database-server.js';
import { createPartners } from './service/partners.js';
import type { ServiceRole } from './service/service-process.js';
import { describeStatements, STATEMENT_SETTINGS, StatementCounts } from './webhooks/statement-counts.js';

/** Parts of what was sustained, at which the latency is measured. */
const LOADS = [0.1, 0.25, 0.5, 0.65, 0.8, 0.9, 1] as const;

/** Which processes share the work. */
const LAYOUTS: Readonly<Record<string, readonly ServiceRole[]>> = {
  'all in one': ['all'],
  'roles apart': ['api', 'worker'],
};

/**
 * From POST to the receiver's 200: what two cores sustain, how late it is at parts and all of that, and what an
 * order costs each process, which is what capacity is computed from.
 */
export async function benchLife(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const settings = options.profile ? STATEMENT_SETTINGS : {};
  const server = cleanups.stopping(await DatabaseServer.start(settings));
  const limit = await rawAcceptance(server, options, cleanups);
  const sections: Section[] = [];
  for (const [name, roles] of Object.entries(LAYOUTS)) {
    const bed = await prepareLife(
      { server, database: `bench_life_${roles.length}`, roles, profile: options.profile },
      cleanups,
    );
    sections.push(
      await measureLayout(name, bed, limit, options).catch((error: unknown) => explain(bed, error)),
    );
    for (const service of bed.services.values()) await service.stop();
    await bed.life.stop();
    if (options.profile) sections.push(profileOf(name, bed));
  }
  return sections;
}

/** What the processes were busy with; a profile is written when its process stops. */
function profileOf(layout: string, bed: LifeBed): Section {
  const notes = [...bed.services.keys()].flatMap((name) => [
    `${name}:`,
    ...describeProfile(path.join(RESULTS, `${name}-life.cpuprofile`)),
  ]);
  return { title: `CPU profile, ${layout}: own time, without what was idle`, rows: [], notes };
}

async function measureLayout(
  name: string,
  bed: LifeBed,
  limit: () => Promise<number>,
  options: BenchOptions,
): Promise<Section> {
  const { warmupMs, roundMs } = options;
  bed.connect();
  await bed.life.runClosed(OPEN_ORDERS, warmupMs, roundMs);
  const sustained: LifeReport[] = [];
  const raw: number[] = [];
  const bursts: number[] = [];
  const costs: ReadonlyMap<string, number>[] = [];
  const statements = options.profile ? await StatementCounts.open(bed.server, bed.database, '%') : null;
  await statements?.reset();
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
  const dearest = statements ? describeStatements(await statements.read(), ordersOf(sustained)) : [];
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
      ...dearest,
    ],
  };
}

function ordersOf(reports: readonly LifeReport[]): { count: number; of: 'order' } {
  // The orders of the bursts are asked for beside those of the rounds.
  return { count: reports.reduce((sum, { inAll }) => sum + inAll + BURST, 0), of: 'order' };
}

/** Every load in turn, and all of them as often as there are rounds: what the machine does besides meets each. */
async function measureLoads(
  bed: LifeBed,
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
