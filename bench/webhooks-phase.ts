import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSecondsOf, cpuSecondsOfTree } from './shared/machine.js';
import { ascending, quantile } from './shared/report.js';
import { callsOf, type CountedStatement } from './shared/statement-counts.js';
import { reusePercentOf, type WebhookBed } from './webhooks-bed.js';
import type { PacedEvents } from './webhooks-events.child.js';

export interface PhasePlan {
  /** Events go to this many partners from the start of the list. Each of those has one endpoint. */
  readonly partners: number;
  readonly perSecond: number;
  readonly warmupMs: number;
  readonly durationMs: number;
  /** Waits for every outcome at the end. If false, statements and CPU are incomplete. */
  readonly untilIdle: boolean;
}

/** The results of one load at one rate. */
export interface Phase {
  readonly recordedPerSecond: number;
  readonly arrivedPerSecond: number;
  /** From the commit to the first byte at the receiver. */
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** From the event's due time. It shows delays that a late load process would hide. */
  readonly p95FromDueMs: number;
  readonly workerCpuUs: number | null;
  readonly databaseCpuUs: number | null;
  readonly loadCpu: number;
  readonly reusePercent: number;
  readonly duplicates: number;
  /** Events that got no database connection within two seconds. */
  readonly refused: number;
  readonly events: number;
  readonly statements: readonly CountedStatement[];
}

/**
 * Records events at a fixed rate and follows each of them to the receiver.
 * @throws Error when one does not arrive
 */
export async function runPhase(bed: WebhookBed, plan: PhasePlan): Promise<Phase> {
  const { receiver, statements, worker } = bed;
  await receiver.call(
    'watch',
    Array.from({ length: plan.partners }, (_, index) => index),
  );
  const countsBefore = await receiver.call('counts');
  await statements.reset();
  const cpu = () => [cpuSecondsOf(worker.pid), cpuSecondsOfTree(bed.plan.server.pid)] as const;
  const before = cpu();
  const paced = await bed.events.call('pace', {
    partnerIds: bed.partnerIds.slice(0, plan.partners),
    perSecond: plan.perSecond,
    durationMs: plan.warmupMs + plan.durationMs,
  });
  const events = paced.committedAtMs.filter((atMs) => atMs !== null).length;
  const counts = await bed.until(({ arrived }) => arrived >= events);
  if (plan.untilIdle) await bed.untilIdle();
  // The queue runs its last statements after the last outcome.
  await sleep(100);
  const after = cpu();
  const perEvent = (index: 0 | 1): number | null =>
    before[index] === null || after[index] === null ? null : ((after[index] - before[index]) / events) * 1e6;
  return {
    ...latenciesOf(paced, new Map(await receiver.call('arrivals')), plan.warmupMs),
    workerCpuUs: perEvent(0),
    databaseCpuUs: perEvent(1),
    loadCpu: paced.cpu,
    reusePercent: reusePercentOf(countsBefore, counts),
    duplicates: counts.duplicates,
    refused: paced.numbers.length - events,
    events,
    statements: await statements.read('bench\\_%'),
  };
}

/** Statements per event, by one role or by all. */
export function statementsPerEvent({ statements, events }: Phase, role?: string): number {
  return callsOf(statements, role) / events;
}

function latenciesOf(paced: PacedEvents, arrivals: ReadonlyMap<number, number>, warmupMs: number) {
  const { numbers, dueAtMs, committedAtMs } = paced;
  const fromMs = dueAtMs[0]! + warmupMs;
  const measured = numbers.flatMap((number, index) => {
    const committed = committedAtMs[index]!;
    if (committed === null || dueAtMs[index]! < fromMs) return [];
    return [{ due: dueAtMs[index]!, committed, arrived: arrivals.get(number)! }];
  });
  // The worker may send before this process learns of the COMMIT.
  const latencies = ascending(measured.map(({ arrived, committed }) => Math.max(0, arrived - committed)));
  const fromDue = ascending(measured.map(({ arrived, due }) => arrived - due));
  return {
    recordedPerSecond: rateOf(measured.map(({ committed }) => committed)),
    arrivedPerSecond: rateOf(measured.map(({ arrived }) => arrived)),
    p50Ms: quantile(latencies, 0.5),
    p95Ms: quantile(latencies, 0.95),
    p99Ms: quantile(latencies, 0.99),
    p95FromDueMs: quantile(fromDue, 0.95),
  };
}

function rateOf(timesMs: readonly number[]): number {
  const sorted = ascending(timesMs);
  return (sorted.length - 1) / ((sorted.at(-1)! - sorted[0]!) / 1_000);
}
