import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '../report/statistics.js';
import { cpuSecondsOf, cpuSecondsOfTree } from '../service/process-facts.js';
import type { WebhookBed } from './bed.js';
import type { PacedEvents } from './event-load.js';
import { reusePercentOf } from './receiver.js';
import { callsOf, type CountedStatement } from './statement-counts.js';

export interface PhasePlan {
  /** Indexes of partners with one endpoint each, of the same index. */
  readonly partners: readonly number[];
  /** Among them, those whose latency is not measured. */
  readonly unwatched?: readonly number[];
  readonly perSecond: number;
  readonly warmupMs: number;
  readonly durationMs: number;
  /** Whether to wait for every outcome at the end; only then statements and CPU are complete. */
  readonly untilIdle: boolean;
}

/** What one load at one rate looked like. */
export interface Phase {
  readonly offeredPerSecond: number;
  readonly recordedPerSecond: number;
  readonly arrivedPerSecond: number;
  /** From the commit to the first byte at the receiver. */
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** From the moment at which the event was to be recorded: what a late load process hides from the others. */
  readonly p95FromDueMs: number;
  readonly statementsPerEvent: number;
  readonly recordingStatementsPerEvent: number;
  readonly workerStatementsPerEvent: number;
  readonly workerCpuUs: number | null;
  readonly databaseCpuUs: number | null;
  readonly loadCpu: number;
  readonly reusePercent: number;
  readonly duplicates: number;
  /** Events that could not be recorded in time: no connection for two seconds. */
  readonly refused: number;
  readonly events: number;
  readonly statements: readonly CountedStatement[];
}

/** Records events at a rate and follows each one to the receiver. @throws Error when one does not come */
export async function runPhase(bed: WebhookBed, plan: PhasePlan): Promise<Phase> {
  const { receiver, server } = bed.plan;
  const unwatched = new Set(plan.unwatched);
  await receiver.watch(plan.partners.filter((index) => !unwatched.has(index)));
  const countsBefore = await receiver.counts();
  await bed.statements.reset();
  const cpu = (): [number | null, number | null] => [
    cpuSecondsOf(bed.worker.pid),
    cpuSecondsOfTree(server.pid),
  ];
  const before = cpu();
  const paced = await bed.load.pace({
    partnerIds: plan.partners.map((index) => bed.partnerIds[index]!),
    perSecond: plan.perSecond,
    durationMs: plan.warmupMs + plan.durationMs,
  });
  const isWatched = paced.partners.map(
    (partner, index) => paced.committedAtMs[index] !== null && !unwatched.has(plan.partners[partner]!),
  );
  const expected = isWatched.filter(Boolean).length;
  const counts = await receiver.until(({ arrived }) => arrived >= expected);
  if (plan.untilIdle) await bed.untilIdle();
  // The last statements of the queue come after the last outcome.
  await sleep(100);
  const after = cpu();
  const statements = await bed.statements.read();
  const events = paced.committedAtMs.filter((atMs) => atMs !== null).length;
  const perEvent = (index: 0 | 1): number | null =>
    before[index] === null || after[index] === null ? null : ((after[index] - before[index]) / events) * 1e6;
  return {
    ...latenciesOf(paced, isWatched, await receiver.arrivals(), plan.warmupMs),
    offeredPerSecond: plan.perSecond,
    statementsPerEvent: callsOf(statements) / events,
    recordingStatementsPerEvent: callsOf(statements, 'bench_load') / events,
    workerStatementsPerEvent: callsOf(statements, 'bench_worker') / events,
    workerCpuUs: perEvent(0),
    databaseCpuUs: perEvent(1),
    loadCpu: paced.cpu,
    reusePercent: reusePercentOf(countsBefore, counts),
    duplicates: counts.duplicates,
    refused: paced.numbers.length - events,
    events,
    statements,
  };
}

type Latencies = Pick<
  Phase,
  'recordedPerSecond' | 'arrivedPerSecond' | 'p50Ms' | 'p95Ms' | 'p99Ms' | 'p95FromDueMs'
>;

function latenciesOf(
  paced: PacedEvents,
  isWatched: readonly boolean[],
  arrivals: ReadonlyMap<number, number>,
  warmupMs: number,
): Latencies {
  const fromMs = paced.dueAtMs[0]! + warmupMs;
  const chosen = paced.numbers
    .map((_, index) => index)
    .filter((index) => isWatched[index] && paced.dueAtMs[index]! >= fromMs);
  const arrivedAtMs = chosen.map((index) => arrivals.get(paced.numbers[index]!)!);
  const committedAtMs = chosen.map((index) => paced.committedAtMs[index]!);
  // The worker may be quicker than the answer to the COMMIT.
  const latencies = sorted(arrivedAtMs.map((atMs, index) => Math.max(0, atMs - committedAtMs[index]!)));
  const fromDue = sorted(arrivedAtMs.map((atMs, index) => atMs - paced.dueAtMs[chosen[index]!]!));
  return {
    recordedPerSecond: rateOf(sorted(committedAtMs)),
    arrivedPerSecond: rateOf(sorted(arrivedAtMs)),
    p50Ms: quantile(latencies, 0.5),
    p95Ms: quantile(latencies, 0.95),
    p99Ms: quantile(latencies, 0.99),
    p95FromDueMs: quantile(fromDue, 0.95),
  };
}

function rateOf(atMs: readonly number[]): number {
  return (atMs.length - 1) / ((atMs.at(-1)! - atMs[0]!) / 1_000);
}

function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
