import type { LoadReport } from './load/plan.js';
import { cpuSecondsOf, cpuSecondsOfTree } from './service/process-facts.js';

/** One round of one subject. */
export interface Measurement extends LoadReport {
  /** CPU time per call, warm-up included; null without /proc. Noise from other processes hardly moves it. */
  readonly serverCpuUs: number | null;
  readonly databaseCpuUs: number | null;
}

export interface Watched {
  readonly serverPid: number;
  readonly databasePid: number | null;
}

/** Runs `load` and charges the CPU time of the processes meanwhile to its calls. */
export async function measure(watched: Watched, load: () => Promise<LoadReport>): Promise<Measurement> {
  const cpu = (): readonly [number | null, number | null] => [
    cpuSecondsOf(watched.serverPid),
    watched.databasePid === null ? null : cpuSecondsOfTree(watched.databasePid),
  ];
  const [serverBefore, databaseBefore] = cpu();
  const report = await load();
  const [serverAfter, databaseAfter] = cpu();
  const perCall = (before: number | null, after: number | null): number | null =>
    before === null || after === null ? null : ((after - before) / report.answeredInAll) * 1e6;
  return {
    ...report,
    serverCpuUs: perCall(serverBefore, serverAfter),
    databaseCpuUs: perCall(databaseBefore, databaseAfter),
  };
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
