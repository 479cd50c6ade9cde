import { row, type Row, type Section } from '../report/report.js';
import { WebhookBed } from './bed.js';
import { indexes, type WebhookPart } from './part.js';
import { type Phase, runPhase } from './phase.js';
import { Receiver } from './receiver.js';
import { describeStatements } from './statement-counts.js';

export const LATENCY_ENDPOINTS = 100;
export const LATENCY_NOTE =
  'From the moment at which the recording process knew of the commit to the first byte at the receiver; one clock.';
const RATES = [200, 500, 1_000];
const MOST_P95_MS = 1_000;
const MOST_STATEMENTS = 6;

/** From commit to first byte, and SQL per event, at three rates. */
export const latency: WebhookPart = async (server, options, cleanups) => {
  const receiver = cleanups.stopping(await Receiver.start(LATENCY_ENDPOINTS));
  const endpointsPerPartner = new Array<number>(LATENCY_ENDPOINTS).fill(1);
  const profile = options.profile ? 'worker-latency' : undefined;
  const bed = await WebhookBed.prepare(
    { server, database: 'bench_latency', receiver, endpointsPerPartner, profile },
    cleanups,
  );
  const plan = { partners: indexes(LATENCY_ENDPOINTS), warmupMs: options.warmupMs, untilIdle: true };
  const phases = new Map<number, Phase[]>(RATES.map((rate) => [rate, []]));
  await runPhase(bed, { ...plan, perSecond: 500, durationMs: 2_000 });
  await bed.settle();
  for (let round = 0; round < options.rounds; round++) {
    for (const rate of RATES) {
      const phase = await runPhase(bed, { ...plan, perSecond: rate, durationMs: options.roundMs });
      phases.get(rate)!.push(phase);
      process.stderr.write(
        `latency ${round + 1}/${options.rounds}: ${rate}/s, p95 ${Math.round(phase.p95Ms)} ms\n`,
      );
    }
  }
  return {
    title: `Latency: one event = one delivery, ${LATENCY_ENDPOINTS} endpoints, one worker`,
    rows: [...phases].flatMap(([rate, rounds]) => rowsOf(`${rate}/s`, rounds, rate === Math.max(...RATES))),
    notes: [
      LATENCY_NOTE,
      'Statements: all that clients sent (pg_stat_statements), BEGIN, COMMIT, queue, sweeps and feed included;',
      'of them, recording sends BEGIN, event with deliveries, and COMMIT per event, and a signal for those of 4 ms.',
      ...[...phases].flatMap(([rate, rounds]) => [
        `The dearest statements at ${rate}/s:`,
        ...describeStatements(rounds.at(-1)?.statements ?? [], { count: rounds.at(-1)?.events ?? NaN }),
      ]),
    ],
  } satisfies Section;
};

function rowsOf(name: string, rounds: readonly Phase[], isHighest: boolean): Row[] {
  const figure = (what: string, unit: string, of: (one: Phase) => number | null): Row =>
    row(`${name}: ${what}`, unit, rounds.map(of));
  const p95 = figure('commit to first byte, p95', 'ms', (one) => one.p95Ms);
  const statements = figure('statements per event', '', (one) => one.statementsPerEvent);
  return [
    figure('recorded', '/s', (one) => one.recordedPerSecond),
    figure('arrived', '/s', (one) => one.arrivedPerSecond),
    figure('commit to first byte, p50', 'ms', (one) => one.p50Ms),
    isHighest ? { ...p95, limit: MOST_P95_MS } : p95,
    figure('commit to first byte, p99', 'ms', (one) => one.p99Ms),
    figure('due to first byte, p95', 'ms', (one) => one.p95FromDueMs),
    { ...statements, limit: MOST_STATEMENTS },
    figure('statements per event: recording', '', (one) => one.recordingStatementsPerEvent),
    figure('statements per event: worker', '', (one) => one.workerStatementsPerEvent),
    figure('CPU of the worker per event', 'us', (one) => one.workerCpuUs),
    figure('CPU of PostgreSQL per event', 'us', (one) => one.databaseCpuUs),
    figure('CPU of the recording process', 'cores', (one) => one.loadCpu),
    figure('requests on a connection that was there', '%', (one) => one.reusePercent),
    figure('not recorded in time', '', (one) => one.refused),
    figure('duplicates', '', (one) => one.duplicates),
  ];
}
