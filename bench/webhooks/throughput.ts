import type { Cleanups } from '../cleanups.js';
import { RawPosts } from '../limits/raw-posts.js';
import { interleave, measure, type Measurement, ratios } from '../measurement.js';
import { row, type Row, type Section } from '../report/report.js';
import type { DatabaseServer } from '../service/database-server.js';
import { WebhookBed } from './bed.js';
import { machineNowMs } from './machine-clock.js';
import { Receiver, reusePercentOf, totalOf } from './receiver.js';
import { callsOf, type CountedStatement, describeStatements } from './statement-counts.js';
import type { WebhookPart } from './part.js';

const ENDPOINTS = 50;
/** The service's default per endpoint; the raw loop has as many callers. */
const PER_ENDPOINT = 16;
const TARGET = 0.25;
/** The raw loop also runs with few callers: the better of the two is the limit. */
const FEW_PER_ENDPOINT = 2;

interface Drain {
  readonly reusePercent: number;
  readonly statementsPerDelivery: number;
  readonly recordedPerSecond: number;
  readonly statements: readonly CountedStatement[];
}

/** Deliveries a second of one worker process that finds a backlog, against POSTs without a service. */
export const throughput: WebhookPart = async (server, options, cleanups) => {
  const backlog = options.quick ? 5_000 : 20_000;
  const bed = await prepare(server, options.profile ? 'worker-throughput' : undefined, cleanups);
  const raw = cleanups.stopping(new RawPosts());
  const drains: Drain[] = [];
  const post = async (perUrl: number): Promise<Measurement> =>
    measure({ serverPid: raw.pid, databasePid: null }, async () =>
      raw.run({
        urls: bed.plan.receiver.urls,
        perUrl,
        secret: bed.secrets[0]!,
        body: await bodyOf(bed),
        warmupMs: options.warmupMs,
        durationMs: options.roundMs,
      }),
    );
  const results = await interleave(
    options.rounds,
    {
      worker: () => drain(bed, backlog, drains),
      raw: () => post(PER_ENDPOINT),
      rawFew: () => post(FEW_PER_ENDPOINT),
    },
    'throughput',
  );
  const measured = drains.slice(-options.rounds);
  const best = results.raw.map((one, round) =>
    one.perSecond > results.rawFew[round]!.perSecond ? one : results.rawFew[round]!,
  );
  const figure = (name: string, unit: string, of: (one: Drain) => number): Row =>
    row(name, unit, measured.map(of));
  return {
    title: `Throughput: ${backlog.toLocaleString('en')} deliveries waiting for ${ENDPOINTS} endpoints, one worker`,
    rows: [
      row('worker / raw POSTs, the better of the two', 'x', ratios(results.worker, best), TARGET),
      row('worker / raw POSTs, as many callers', 'x', ratios(results.worker, results.raw)),
      ...perSecond('worker', results.worker),
      ...perSecond(`raw POSTs, ${ENDPOINTS * PER_ENDPOINT} callers`, results.raw),
      ...perSecond(`raw POSTs, ${ENDPOINTS * FEW_PER_ENDPOINT} callers`, results.rawFew),
      row(
        'worker: CPU of PostgreSQL per delivery',
        'us',
        results.worker.map((one) => one.databaseCpuUs),
      ),
      figure('worker: until the last outcome is committed', '/s', (one) => one.recordedPerSecond),
      figure('worker: statements per delivery', '', (one) => one.statementsPerDelivery),
      figure('worker: requests on a connection that was there', '%', (one) => one.reusePercent),
    ],
    notes: [
      'From the first request to the last at the receiver; the events were recorded before, the endpoints closed.',
      "Raw POSTs: Node's client, the same agent settings, the same body signed anew for every call, same receiver.",
      'The dearest statements of the last round:',
      ...describeStatements(measured.at(-1)?.statements ?? [], { count: backlog }),
    ],
  } satisfies Section;
};

async function prepare(
  server: DatabaseServer,
  profile: string | undefined,
  cleanups: Cleanups,
): Promise<WebhookBed> {
  const receiver = cleanups.stopping(await Receiver.start(ENDPOINTS));
  const endpointsPerPartner = new Array<number>(ENDPOINTS).fill(1);
  const plan = { server, database: 'bench_throughput', receiver, endpointsPerPartner, profile };
  return WebhookBed.prepare(plan, cleanups);
}

async function drain(bed: WebhookBed, backlog: number, drains: Drain[]): Promise<Measurement> {
  const { receiver } = bed.plan;
  const all = bed.endpointIds.map((_, index) => index);
  await bed.open(all, false);
  await bed.load.bulk({ partnerIds: bed.partnerIds, count: backlog });
  await bed.settle();
  await receiver.watch([]);
  await receiver.reset();
  await bed.statements.reset();
  return measure({ serverPid: bed.worker.pid, databasePid: bed.plan.server.pid }, async () => {
    await bed.open(all, true);
    const counts = await receiver.until((now) => totalOf(now) >= backlog);
    await bed.untilIdle();
    const idleAtMs = machineNowMs();
    const firstAtMs = Math.min(...counts.seen.map((one) => one.firstAtMs));
    const lastAtMs = Math.max(...counts.seen.map((one) => one.lastAtMs));
    const statements = await bed.statements.read();
    drains.push({
      reusePercent: reusePercentOf(null, counts),
      statementsPerDelivery: callsOf(statements, 'bench_worker') / backlog,
      recordedPerSecond: backlog / ((idleAtMs - firstAtMs) / 1_000),
      statements,
    });
    return {
      perSecond: (backlog - 1) / ((lastAtMs - firstAtMs) / 1_000),
      p50Ms: NaN,
      p95Ms: NaN,
      p99Ms: NaN,
      statuses: {},
      answeredInAll: backlog,
      generatorCpu: 0,
    };
  });
}

function perSecond(name: string, rounds: readonly Measurement[]): Row[] {
  return [
    row(
      `${name}: rate`,
      '/s',
      rounds.map((one) => one.perSecond),
    ),
    row(
      `${name}: CPU of its process per delivery`,
      'us',
      rounds.map((one) => one.serverCpuUs),
    ),
  ];
}

async function bodyOf(bed: WebhookBed): Promise<string> {
  const [event] = await bed.query<{ body: string }>('SELECT body FROM events LIMIT 1');
  if (!event) throw new Error('no event is recorded yet');
  return event.body;
}
