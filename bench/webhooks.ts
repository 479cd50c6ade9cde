/**
 * `npm run bench -- webhooks`: one worker process. Each part runs on its own database server:
 *
 * - `throughput`: deliveries per second from a backlog. Limit: signed POSTs that Node's client sends in a loop to the
 *   same receiver, with many and with few callers. The goal is 0.25 of the better one.
 * - `latency`: time from an event's commit to the first byte at the receiver, and SQL statements and CPU per event, at
 *   three rates. Limits: 6 statements per event, and a p95 of one second at the highest rate.
 * - `backlog`: one partner opens 20 endpoints with 100,000 deliveries. Limit: the other partners' p95 stays below one
 *   second. Compare it with their p95 before.
 *
 * `attacks` measures endpoints that hang. `growth` measures claims on large tables.
 */
import type { BenchOptions } from './main.js';
import { Child, Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import type { LoadApi } from './shared/load.child.js';
import { machineNowMs } from './shared/machine.js';
import { interleave, measure, type Measurement, ratios } from './shared/measurement.js';
import { figuresOf, row, type Row, say, type Section } from './shared/report.js';
import {
  callsOf,
  type CountedStatement,
  describeStatements,
  STATEMENT_SETTINGS,
} from './shared/statement-counts.js';
import { reusePercentOf, totalOf, WebhookBed } from './webhooks-bed.js';
import { type Phase, runPhase, statementsPerEvent } from './webhooks-phase.js';

type Part = (server: DatabaseServer, options: BenchOptions, cleanups: Cleanups) => Promise<Section>;

const SETTINGS_NOTE =
  'Settings: WEBHOOK_ALLOW_PRIVATE_TARGETS=true (http on loopback), otherwise defaults. No Redis. PostgreSQL is durable.';
const LATENCY_NOTE =
  'Latency: from when the recording process learned of the commit to the first byte at the receiver, on one clock.';

export const WEBHOOK_PARTS: Readonly<Record<string, Part>> = { throughput, latency, backlog };

export async function benchWebhooks(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const sections: Section[] = [];
  for (const name of options.part === null ? Object.keys(WEBHOOK_PARTS) : [options.part]) {
    const own = cleanups.stopping(new Cleanups());
    try {
      const server = own.stopping(await DatabaseServer.start(STATEMENT_SETTINGS));
      const section = await WEBHOOK_PARTS[name]!(server, options, own);
      sections.push({ ...section, notes: [SETTINGS_NOTE, ...section.notes] });
    } finally {
      await own.stop();
    }
  }
  return sections;
}

const DRAINED_ENDPOINTS = 50;
/** The service's default per endpoint. The raw loop runs with as many callers and with few. */
const CALLERS_PER_ENDPOINT = 16;
const FEW_CALLERS_PER_ENDPOINT = 2;

interface Drain {
  readonly reusePercent: number;
  readonly recordedPerSecond: number;
  readonly statements: readonly CountedStatement[];
}

async function throughput(
  server: DatabaseServer,
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<Section> {
  const backlog = options.quick ? 5_000 : 20_000;
  const endpointsPerPartner = new Array<number>(DRAINED_ENDPOINTS).fill(1);
  const profile = options.profile ? 'worker-throughput' : undefined;
  const plan = { server, database: 'bench_throughput', endpointsPerPartner, profile };
  const bed = await WebhookBed.open(plan, cleanups);
  const raw = cleanups.stopping(Child.start<LoadApi>(new URL('./shared/load.child.js', import.meta.url)));
  const drains: Drain[] = [];
  const post = async (callersPerUrl: number): Promise<Measurement> => {
    const [event] = await bed.query<{ body: string }>('SELECT body FROM events LIMIT 1');
    const times = { warmupMs: options.warmupMs, durationMs: options.roundMs };
    const posts = { urls: bed.urls, callersPerUrl, secret: bed.secrets[0]!, body: event!.body, ...times };
    return measure({ serverPid: raw.pid, databasePid: null }, () => raw.call('posts', posts));
  };
  const results = await interleave(
    options.rounds,
    {
      worker: () => drain(bed, backlog, drains),
      raw: () => post(CALLERS_PER_ENDPOINT),
      rawFew: () => post(FEW_CALLERS_PER_ENDPOINT),
    },
    'throughput',
  );
  const measured = drains.slice(-options.rounds);
  const best = results.raw.map((one, round) =>
    one.perSecond > results.rawFew[round]!.perSecond ? one : results.rawFew[round]!,
  );
  const figure = figuresOf(measured, 'worker: ');
  const rates = (name: string, rounds: readonly Measurement[]): Row[] => {
    const rate = figuresOf(rounds, `${name}: `);
    return [
      rate('rate', '/s', (one) => one.perSecond),
      rate('CPU of its process per delivery', 'us', (one) => one.serverCpuUs),
    ];
  };
  return {
    title: `Throughput: ${backlog.toLocaleString('en')} deliveries waiting for ${DRAINED_ENDPOINTS} endpoints, one worker`,
    rows: [
      row('worker / raw POSTs, the better of the two', 'x', ratios(results.worker, best), { target: 0.25 }),
      row('worker / raw POSTs, same number of callers', 'x', ratios(results.worker, results.raw)),
      ...rates('worker', results.worker),
      ...rates(`raw POSTs, ${DRAINED_ENDPOINTS * CALLERS_PER_ENDPOINT} callers`, results.raw),
      ...rates(`raw POSTs, ${DRAINED_ENDPOINTS * FEW_CALLERS_PER_ENDPOINT} callers`, results.rawFew),
      figuresOf(results.worker)('worker: CPU of PostgreSQL per delivery', 'us', (one) => one.databaseCpuUs),
      figure('until the last outcome is committed', '/s', (one) => one.recordedPerSecond),
      figure(
        'statements per delivery',
        '',
        ({ statements }) => callsOf(statements, 'bench_worker') / backlog,
      ),
      figure('requests on a reused connection', '%', (one) => one.reusePercent),
    ],
    notes: [
      'Rate: from the first request to the last at the receiver. The events were recorded while the endpoints were closed.',
      "Raw POSTs: Node's client with the same agent settings and receiver. Each call signs the same body again.",
      'The most expensive statements of the last round:',
      ...describeStatements(measured.at(-1)!.statements, backlog, 'delivery'),
    ],
  };
}

/** Records a backlog for closed endpoints, opens them, and measures until the last request arrives. */
async function drain(bed: WebhookBed, backlog: number, drains: Drain[]): Promise<Measurement> {
  const all = bed.endpointIds.map((_, index) => index);
  await bed.open(all, false);
  await bed.events.call('bulk', bed.partnerIds, backlog);
  await bed.settle();
  await bed.receiver.call('watch', []);
  await bed.receiver.call('reset');
  await bed.statements.reset();
  return measure({ serverPid: bed.worker.pid, databasePid: bed.plan.server.pid }, async () => {
    await bed.open(all, true);
    const counts = await bed.until((now) => totalOf(now, 'requests') >= backlog);
    await bed.untilIdle();
    const idleAtMs = machineNowMs();
    const firstAtMs = Math.min(...counts.seen.map((one) => one.firstAtMs));
    const lastAtMs = Math.max(...counts.seen.map((one) => one.lastAtMs));
    drains.push({
      reusePercent: reusePercentOf(null, counts),
      recordedPerSecond: backlog / ((idleAtMs - firstAtMs) / 1_000),
      statements: await bed.statements.read('bench\\_%'),
    });
    const none = { p50Ms: NaN, p95Ms: NaN, p99Ms: NaN, generatorCpu: 0 };
    return { perSecond: (backlog - 1) / ((lastAtMs - firstAtMs) / 1_000), answeredInAll: backlog, ...none };
  });
}

const ENDPOINTS = 100;
const RATES = [200, 500, 1_000];

async function latency(server: DatabaseServer, options: BenchOptions, cleanups: Cleanups): Promise<Section> {
  const endpointsPerPartner = new Array<number>(ENDPOINTS).fill(1);
  const profile = options.profile ? 'worker-latency' : undefined;
  const bed = await WebhookBed.open(
    { server, database: 'bench_latency', endpointsPerPartner, profile },
    cleanups,
  );
  const plan = { partners: ENDPOINTS, warmupMs: options.warmupMs, untilIdle: true };
  const phases = new Map<number, Phase[]>(RATES.map((rate) => [rate, []]));
  await runPhase(bed, { ...plan, perSecond: 500, durationMs: 2_000 });
  await bed.settle();
  for (let round = 1; round <= options.rounds; round++) {
    for (const [rate, of] of phases) {
      const phase = await runPhase(bed, { ...plan, perSecond: rate, durationMs: options.roundMs });
      of.push(phase);
      say(`latency ${round}/${options.rounds}: ${rate}/s, p95 ${Math.round(phase.p95Ms)} ms`);
    }
  }
  return {
    title: `Latency: one event = one delivery, ${ENDPOINTS} endpoints, one worker`,
    rows: [...phases].flatMap(([rate, rounds]) => latencyRows(rate, rounds)),
    notes: [
      LATENCY_NOTE,
      'Statements: all that clients sent (pg_stat_statements), including BEGIN, COMMIT, queue, sweeps and feed.',
      'Per event, recording sends BEGIN, the event with its deliveries, and COMMIT. One signal covers all events of 4 ms.',
      ...[...phases].flatMap(([rate, rounds]) => [
        `The most expensive statements at ${rate}/s:`,
        ...describeStatements(rounds.at(-1)!.statements, rounds.at(-1)!.events, 'event'),
      ]),
    ],
  };
}

function latencyRows(rate: number, rounds: readonly Phase[]): Row[] {
  const figure = figuresOf(rounds, `${rate}/s: `);
  return [
    figure('recorded', '/s', (one) => one.recordedPerSecond),
    figure('arrived', '/s', (one) => one.arrivedPerSecond),
    figure('commit to first byte, p50', 'ms', (one) => one.p50Ms),
    figure(
      'commit to first byte, p95',
      'ms',
      (one) => one.p95Ms,
      rate === RATES.at(-1) ? { limit: 1_000 } : {},
    ),
    figure('commit to first byte, p99', 'ms', (one) => one.p99Ms),
    figure('due time to first byte, p95', 'ms', (one) => one.p95FromDueMs),
    figure('statements per event', '', (one) => statementsPerEvent(one), { limit: 6 }),
    figure('statements per event: recording', '', (one) => statementsPerEvent(one, 'bench_load')),
    figure('statements per event: worker', '', (one) => statementsPerEvent(one, 'bench_worker')),
    figure('CPU of the worker per event', 'us', (one) => one.workerCpuUs),
    figure('CPU of PostgreSQL per event', 'us', (one) => one.databaseCpuUs),
    figure('CPU of the recording process per event', 'us', (one) => (one.loadCpu / rate) * 1e6),
    figure('requests on a reused connection', '%', (one) => one.reusePercent),
    figure('not recorded in time', '', (one) => one.refused),
    figure('duplicates', '', (one) => one.duplicates),
  ];
}

const BACKLOG_RATE = 200;
const RECOVERED_ENDPOINTS = 20;
const CHUNK_MS = 5_000;

async function backlog(server: DatabaseServer, options: BenchOptions, cleanups: Cleanups): Promise<Section> {
  const deliveries = options.quick ? 10_000 : 100_000;
  const endpointsPerPartner = [...new Array<number>(ENDPOINTS).fill(1), RECOVERED_ENDPOINTS];
  const bed = await WebhookBed.open({ server, database: 'bench_backlog', endpointsPerPartner }, cleanups);
  const recovered = Array.from({ length: RECOVERED_ENDPOINTS }, (_, index) => ENDPOINTS + index);
  await bed.open(recovered, false);
  await bed.events.call('bulk', bed.partnerIds.slice(ENDPOINTS), deliveries / RECOVERED_ENDPOINTS);
  await bed.settle();
  const plan = { partners: ENDPOINTS, perSecond: BACKLOG_RATE, warmupMs: 0, untilIdle: false };
  const measureOthers = (durationMs: number): Promise<Phase> => runPhase(bed, { ...plan, durationMs });
  await measureOthers(options.roundMs);
  const quiet: Phase[] = [];
  for (let chunk = 0; chunk < options.rounds; chunk++) quiet.push(await measureOthers(CHUNK_MS));
  const openedAtMs = machineNowMs();
  await bed.open(recovered, true);
  const busy: Phase[] = [];
  let arrived: number;
  let lastAtMs: number;
  do {
    const phase = await measureOthers(CHUNK_MS);
    const seen = (await bed.receiver.call('counts')).seen.slice(ENDPOINTS);
    arrived = seen.reduce((sum, { requests }) => sum + requests, 0);
    lastAtMs = Math.max(...seen.map((one) => one.lastAtMs));
    if (busy.length === 0 || arrived < deliveries) busy.push(phase);
    say(`backlog: ${Math.max(0, deliveries - arrived)} left, others' p95 ${Math.round(phase.p95Ms)} ms`);
  } while (arrived < deliveries);
  await bed.untilIdle();
  const seconds = (lastAtMs - openedAtMs) / 1_000;
  const [before, meanwhile] = [figuresOf(quiet), figuresOf(busy)];
  return {
    title: `Backlog: ${deliveries.toLocaleString('en')} deliveries of one partner with ${RECOVERED_ENDPOINTS} endpoints, one worker`,
    rows: [
      row('from opening the endpoints to the last delivery', 's', [seconds]),
      row('rate', '/s', [deliveries / seconds]),
      row('sent more than once', '', [arrived - deliveries]),
      before("others' p50, before", 'ms', (one) => one.p50Ms),
      meanwhile("others' p50, during the backlog", 'ms', (one) => one.p50Ms),
      before("others' p95, before", 'ms', (one) => one.p95Ms),
      meanwhile("others' p95, during the backlog", 'ms', (one) => one.p95Ms, { limit: 1_000 }),
      meanwhile("others' p99, during the backlog", 'ms', (one) => one.p99Ms),
      meanwhile("others' rate, during the backlog", '/s', (one) => one.arrivedPerSecond),
    ],
    notes: [
      `The others: ${ENDPOINTS} endpoints, ${BACKLOG_RATE} events/s in total, measured in chunks of ${CHUNK_MS / 1_000} s.`,
      LATENCY_NOTE,
    ],
  };
}
