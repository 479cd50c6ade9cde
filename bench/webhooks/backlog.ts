import { row, type Section } from '../report/report.js';
import { WebhookBed } from './bed.js';
import { LATENCY_ENDPOINTS, LATENCY_NOTE } from './latency.js';
import { machineNowMs } from './machine-clock.js';
import { indexes, type WebhookPart } from './part.js';
import { type Phase, runPhase } from './phase.js';
import { type Counts, Receiver } from './receiver.js';

const RATE = 200;
const RECOVERED_ENDPOINTS = 20;
const CHUNK_MS = 5_000;

/** One partner comes back to 100,000 deliveries: how fast are they gone, and who else notices? */
export const backlog: WebhookPart = async (server, options, cleanups) => {
  const deliveries = options.quick ? 10_000 : 100_000;
  const receiver = cleanups.stopping(await Receiver.start(LATENCY_ENDPOINTS + RECOVERED_ENDPOINTS));
  const endpointsPerPartner = [...new Array<number>(LATENCY_ENDPOINTS).fill(1), RECOVERED_ENDPOINTS];
  const bed = await WebhookBed.prepare(
    { server, database: 'bench_backlog', receiver, endpointsPerPartner },
    cleanups,
  );
  const recovered = indexes(RECOVERED_ENDPOINTS, LATENCY_ENDPOINTS);
  await bed.open(recovered, false);
  await bed.load.bulk({
    partnerIds: [bed.partnerIds[LATENCY_ENDPOINTS]!],
    count: deliveries / RECOVERED_ENDPOINTS,
  });
  await bed.settle();
  const measure = (durationMs: number): Promise<Phase> =>
    runPhase(bed, {
      partners: indexes(LATENCY_ENDPOINTS),
      perSecond: RATE,
      warmupMs: 0,
      durationMs,
      untilIdle: false,
    });
  await measure(options.roundMs);
  const quiet: Phase[] = [];
  for (let chunk = 0; chunk < options.rounds; chunk++) quiet.push(await measure(CHUNK_MS));
  const progress = new DrainProgress(recovered, deliveries);
  const openedAtMs = machineNowMs();
  await bed.open(recovered, true);
  const busy: Phase[] = [];
  do {
    const phase = await measure(CHUNK_MS);
    progress.update(await receiver.counts());
    if (busy.length === 0 || progress.left > 0) busy.push(phase);
    process.stderr.write(`backlog: ${progress.left} left, others' p95 ${Math.round(phase.p95Ms)} ms\n`);
  } while (progress.left > 0);
  await bed.untilIdle();
  const seconds = (progress.lastAtMs - openedAtMs) / 1_000;
  const figure = (name: string, unit: string, phases: readonly Phase[], of: (one: Phase) => number) =>
    row(name, unit, phases.map(of));
  return {
    title: `Backlog: ${deliveries.toLocaleString('en')} deliveries of one partner with ${RECOVERED_ENDPOINTS} endpoints, one worker`,
    rows: [
      row('from the opening to the last delivery', 's', [seconds]),
      row('pace', '/s', [deliveries / seconds]),
      row('sent more than once', '', [progress.arrived - deliveries]),
      figure("others' p50, before", 'ms', quiet, (one) => one.p50Ms),
      figure("others' p50, meanwhile", 'ms', busy, (one) => one.p50Ms),
      figure("others' p95, before", 'ms', quiet, (one) => one.p95Ms),
      { ...figure("others' p95, meanwhile", 'ms', busy, (one) => one.p95Ms), limit: 1_000 },
      figure("others' p99, meanwhile", 'ms', busy, (one) => one.p99Ms),
      figure("others' rate, meanwhile", '/s', busy, (one) => one.arrivedPerSecond),
    ],
    notes: [
      `The others: ${LATENCY_ENDPOINTS} endpoints, ${RATE} events/s over all, in chunks of ${CHUNK_MS / 1_000} s.`,
      LATENCY_NOTE,
    ],
  } satisfies Section;
};

class DrainProgress {
  arrived = 0;
  lastAtMs = 0;

  constructor(
    private readonly endpoints: readonly number[],
    private readonly deliveries: number,
  ) {}

  get left(): number {
    return Math.max(0, this.deliveries - this.arrived);
  }

  update({ seen }: Counts): void {
    this.arrived = 0;
    for (const index of this.endpoints) {
      this.arrived += seen[index]!.requests;
      this.lastAtMs = Math.max(this.lastAtMs, seen[index]!.lastAtMs);
    }
  }
}
