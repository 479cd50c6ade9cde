import os from 'node:os';
import type { LoadReport } from './load.js';
import { cpuSecondsOf, cpuSecondsOfTree } from './machine.js';
import { figuresOf, type Row, say } from './report.js';

/** One round of one side of a comparison. */
export interface Measurement extends LoadReport {
  /** CPU time per call including the warm-up; null without /proc. Other programs hardly affect it. */
  readonly serverCpuUs: number | null;
  readonly databaseCpuUs: number | null;
  /** CPU cores that other programs used during the round; null without /proc. */
  readonly otherCpu: number | null;
}

export interface Watched {
  readonly serverPid: number;
  readonly databasePid: number | null;
}

/** Runs `load` and divides the processes' CPU time by the number of calls. */
export async function measure(watched: Watched, load: () => Promise<LoadReport>): Promise<Measurement> {
  const startedAtMs = performance.now();
  const before = readCpuSeconds(watched);
  const report = await load();
  const after = readCpuSeconds(watched);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const spent = (name: 'server' | 'database'): number | null =>
    before[name] === null || after[name] === null ? null : after[name] - before[name];
  const [server, database] = [spent('server'), spent('database')];
  const perCall = (cpu: number | null): number | null => cpu && (cpu / report.answeredInAll) * 1e6;
  const others = (after.machine - before.machine - (server ?? 0) - (database ?? 0)) / seconds;
  return {
    ...report,
    serverCpuUs: perCall(server),
    databaseCpuUs: perCall(database),
    otherCpu: server && Math.max(0, others - report.generatorCpu),
  };
}

function readCpuSeconds({ serverPid, databasePid }: Watched) {
  const machine = os.cpus().flatMap(({ times: { user, nice, sys, irq } }) => [user, nice, sys, irq]);
  return {
    server: cpuSecondsOf(serverPid),
    database: databasePid === null ? null : cpuSecondsOfTree(databasePid),
    machine: machine.reduce((sum, ms) => sum + ms / 1_000, 0),
  };
}

/**
 * Measures every side once per round in alternating order (A B C, C B A, ...). A disturbance of the machine thus
 * affects all sides, and being first is no advantage. Drops a warm-up round, in which the code is not compiled yet and
 * the pools are empty.
 */
export async function interleave<Name extends string, Round extends { readonly perSecond: number }>(
  rounds: number,
  sides: Readonly<Record<Name, () => Promise<Round>>>,
  title: string,
): Promise<Readonly<Record<Name, readonly Round[]>>> {
  const names = Object.keys(sides) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Round[]])) as Record<Name, Round[]>;
  for (const name of names) await sides[name]();
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? names : [...names].reverse();
    for (const name of order) results[name].push(await sides[name]());
    const shown = names.map((name) => `${name} ${Math.round(results[name].at(-1)!.perSecond)}`);
    say(`${title} ${round + 1}/${rounds}: ${shown.join(', ')} /s`);
  }
  return results;
}

/** Throughput of `a` divided by that of `b`, for each round. */
export function ratios(a: readonly Measurement[], b: readonly Measurement[]): number[] {
  return a.map((one, round) => one.perSecond / b[round]!.perSecond);
}

/** Figures that explain a ratio. */
export function detail(name: string, rounds: readonly Measurement[]): Row[] {
  const figure = figuresOf(rounds, `${name}: `);
  return [
    figure('calls', '/s', (one) => one.perSecond),
    figure('latency p50', 'ms', (one) => one.p50Ms),
    figure('latency p99', 'ms', (one) => one.p99Ms),
    figure('CPU of its process per call', 'us', (one) => one.serverCpuUs),
    figure('CPU of PostgreSQL per call', 'us', (one) => one.databaseCpuUs),
  ];
}

/** CPU time spent outside the measured processes. The higher it is, the less a ratio says. */
export function disturbance(results: Readonly<Record<string, readonly Measurement[]>>): Row[] {
  const figure = figuresOf(Object.values(results).flat());
  return [
    figure('load generator: CPU', 'cores', (one) => one.generatorCpu),
    figure('other programs: CPU', 'cores', (one) => one.otherCpu),
  ];
}
