import os from 'node:os';
import type { LoadReport } from './load/plan.js';
import { cpuSecondsOf, cpuSecondsOfTree } from './service/process-facts.js';

/** One round of one subject. */
export interface Measurement extends LoadReport {
  /** CPU time per call, warm-up included; null without /proc. Noise from other programs hardly moves it. */
  readonly serverCpuUs: number | null;
  readonly databaseCpuUs: number | null;
  /** Cores that programs other than ours took meanwhile; null without /proc. */
  readonly otherCpu: number | null;
}

export interface Watched {
  readonly serverPid: number;
  readonly databasePid: number | null;
}

/** CPU seconds so far. */
interface CpuTimes {
  readonly server: number | null;
  readonly database: number | null;
  readonly machine: number;
}

/** Runs `load` and charges the CPU time of the processes meanwhile to its calls. */
export async function measure(watched: Watched, load: () => Promise<LoadReport>): Promise<Measurement> {
  const startedAtMs = performance.now();
  const before = readCpuTimes(watched);
  const report = await load();
  const after = readCpuTimes(watched);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const server = difference(before.server, after.server);
  const database = difference(before.database, after.database);
  const perCall = (spent: number | null): number | null => spent && (spent / report.answeredInAll) * 1e6;
  return {
    ...report,
    serverCpuUs: perCall(server),
    databaseCpuUs: perCall(database),
    otherCpu:
      server &&
      Math.max(
        0,
        (after.machine - before.machine - server - (database ?? 0)) / seconds - report.generatorCpu,
      ),
  };
}

function readCpuTimes({ serverPid, databasePid }: Watched): CpuTimes {
  return {
    server: cpuSecondsOf(serverPid),
    database: databasePid === null ? null : cpuSecondsOfTree(databasePid),
    machine: os
      .cpus()
      .reduce((sum, { times }) => sum + (times.user + times.nice + times.sys + times.irq) / 1_000, 0),
  };
}

function difference(before: number | null, after: number | null): number | null {
  return before === null || after === null ? null : after - before;
}

/**
 * Measures every subject once per round, one after the other (A B C, C B A, ...): what the machine does meanwhile
 * hits all of them, and being first is no advantage. One round before the first is thrown away: the code is not
 * compiled yet, and the pools are empty.
 */
export async function interleave<Name extends string>(
  rounds: number,
  subjects: Readonly<Record<Name, () => Promise<Measurement>>>,
  title: string,
): Promise<Readonly<Record<Name, readonly Measurement[]>>> {
  const names = Object.keys(subjects) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Measurement[]])) as Record<
    Name,
    Measurement[]
  >;
  for (const name of names) await subjects[name]();
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? names : [...names].reverse();
    for (const name of order) results[name].push(await subjects[name]());
    const shown = names.map((name) => `${name} ${Math.round(results[name].at(-1)!.perSecond)}`);
    process.stderr.write(`${title} ${round + 1}/${rounds}: ${shown.join(', ')} /s\n`);
  }
  return results;
}

/** Throughput of `a` over that of `b`, round by round. */
export function ratios(a: readonly Measurement[], b: readonly Measurement[]): number[] {
  return a.map((one, round) => one.perSecond / b[round]!.perSecond);
}
