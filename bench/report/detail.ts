import type { Measurement } from '../measurement.js';
import { row, type Row } from './report.js';

/** What explains a ratio. */
export function detail(name: string, rounds: readonly Measurement[]): Row[] {
  const figure = (what: string, unit: string, of: (one: Measurement) => number | null): Row =>
    row(`${name}: ${what}`, unit, rounds.map(of));
  return [
    figure('calls', '/s', (one) => one.perSecond),
    figure('latency p50', 'ms', (one) => one.p50Ms),
    figure('latency p99', 'ms', (one) => one.p99Ms),
    figure('CPU of its process per call', 'us', (one) => one.serverCpuUs),
    figure('CPU of PostgreSQL per call', 'us', (one) => one.databaseCpuUs),
  ];
}

/** How much the machine did for others meanwhile, and for the generator: what makes a ratio worth less. */
export function disturbance(results: Readonly<Record<string, readonly Measurement[]>>): Row[] {
  const all = Object.values(results).flat();
  return [
    row(
      'load generator: CPU',
      'cores',
      all.map((one) => one.generatorCpu),
    ),
    row(
      'other programs: CPU',
      'cores',
      all.map((one) => one.otherCpu),
    ),
  ];
}
