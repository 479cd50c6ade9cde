import { row, type Row, type Section } from '../report/report.js';
import { WebhookBed } from './bed.js';
import { LATENCY_ENDPOINTS, LATENCY_NOTE } from './latency.js';
import { indexes, type WebhookPart } from './part.js';
import { type Phase, runPhase } from './phase.js';
import { Receiver } from './receiver.js';
import { callsOf, describeStatements } from './statement-counts.js';

const PER_SECOND = 200;
const DURATION_MS = 10_000;
const MOST_STATEMENTS = 6;

/** What an event costs at 200 a second: counts and CPU time, which say the same on a busy machine as on an idle one. */
export const statements: WebhookPart = async (server, options, cleanups) => {
  const receiver = cleanups.stopping(await Receiver.start(LATENCY_ENDPOINTS));
  const endpointsPerPartner = new Array<number>(LATENCY_ENDPOINTS).fill(1);
  const bed = await WebhookBed.prepare(
    { server, database: 'bench_statements', receiver, endpointsPerPartner },
    cleanups,
  );
  const plan = { partners: indexes(LATENCY_ENDPOINTS), warmupMs: 0, untilIdle: true };
  await runPhase(bed, { ...plan, perSecond: PER_SECOND, durationMs: 2_000 });
  await bed.settle();
  const phases: Phase[] = [];
  for (let round = 0; round < options.rounds; round++) {
    phases.push(await runPhase(bed, { ...plan, perSecond: PER_SECOND, durationMs: DURATION_MS }));
    process.stderr.write(`statements ${round + 1}/${options.rounds}\n`);
  }
  const last = phases.at(-1)!;
  return {
    title: `Cost of an event at ${PER_SECOND}/s: one delivery each, ${LATENCY_ENDPOINTS} endpoints, one worker`,
    rows: rowsOf(phases),
    notes: [
      LATENCY_NOTE,
      'The dearest statements:',
      ...describeStatements(last.statements, { count: last.events }),
    ],
  } satisfies Section;
};

function rowsOf(phases: readonly Phase[]): Row[] {
  const figure = (what: string, unit: string, of: (one: Phase) => number | null): Row =>
    row(what, unit, phases.map(of));
  return [
    { ...figure('statements per event', '', (one) => one.statementsPerEvent), limit: MOST_STATEMENTS },
    figure('statements per event: BEGIN and COMMIT of what records it', '', ofTheCause),
    figure('statements per event: recording, with these', '', (one) => one.recordingStatementsPerEvent),
    figure('statements per event: worker', '', (one) => one.workerStatementsPerEvent),
    figure('CPU of the worker per event', 'us', (one) => one.workerCpuUs),
    figure('CPU of PostgreSQL per event', 'us', (one) => one.databaseCpuUs),
    figure('CPU of the recording process per event', 'us', (one) => (one.loadCpu / PER_SECOND) * 1e6),
    figure('commit to first byte, p50', 'ms', (one) => one.p50Ms),
    figure('commit to first byte, p95', 'ms', (one) => one.p95Ms),
  ];
}

/** In the service an event is one statement of the transaction that made it true; here it has one of its own. */
function ofTheCause({ statements: counted, events }: Phase): number {
  const own = counted.filter(({ query }) => /^(?:START TRANSACTION|BEGIN|COMMIT)$/.test(query));
  return callsOf(own) / events;
}
