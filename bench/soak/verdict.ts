import { format } from '../report/report.js';
import type { LockWait } from './lock-waits.js';
import type { Sample } from './sampler.js';

/** A sample and when it was taken, in minutes since the load began. */
export interface TimedSample {
  readonly minute: number;
  readonly sample: Sample;
}

/** What is measured before is the filling of caches and of the first retention period. */
export const WARM_UP_MINUTES = 5;
export const FIRST_PERIOD_MINUTES = 20;
const MOST_MEMORY_GROWTH = 1.1;
/** Days go at once: what there is goes up and down between two purges. */
const MOST_SIZE_GROWTH = 1.15;
/** Smaller things are noise: a page more is half of a small table. */
const LEAST_MB = 8;
const MOST_WAIT_MS = 100;

export function soakTable(samples: readonly TimedSample[]): string[][] {
  const from = samples.filter(({ minute }) => minute >= WARM_UP_MINUTES);
  const used = from.length > 1 ? from : samples;
  const names = Object.keys(used[0]?.sample ?? {});
  return [
    ['', 'first', 'min', 'max', 'last', 'slope/h'],
    ...names.map((name) => {
      const values = valuesOf(used, name);
      const [first, last] = [values[0]!, values.at(-1)!];
      return [
        name,
        ...[first, Math.min(...values), Math.max(...values), last, slopePerHour(used, name)].map(format),
      ];
    }),
  ];
}

/** One line for each promise. */
export function verdicts(
  samples: readonly TimedSample[],
  waits: readonly LockWait[],
  errors: Readonly<Record<string, number>>,
): string[] {
  return [
    growthVerdict('flat memory', samples, WARM_UP_MINUTES, / RSS \(MB\)| heap used/, MOST_MEMORY_GROWTH),
    growthVerdict(
      'flat sizes after the first retention period',
      samples,
      FIRST_PERIOD_MINUTES,
      /: (table|indexes) \(MB\)|^database|its tables/,
      MOST_SIZE_GROWTH,
    ),
    waitVerdict(waits),
    Object.keys(errors).length === 0
      ? 'KEPT: no call was refused or lost'
      : `calls that failed: ${JSON.stringify(errors)}`,
  ];
}

/** Whether the highest of the second half is above the highest of the first. */
function growthVerdict(
  promise: string,
  samples: readonly TimedSample[],
  fromMinute: number,
  which: RegExp,
  mostGrowth: number,
): string {
  const used = samples.filter(({ minute }) => minute >= fromMinute);
  if (used.length < 10)
    return `TOO SHORT to tell: ${promise} (${used.length} samples after ${fromMinute} min)`;
  const middle = Math.floor(used.length / 2);
  const grown = Object.keys(used[0]!.sample)
    .filter((name) => which.test(name))
    .flatMap((name) => {
      const before = Math.max(...valuesOf(used.slice(0, middle), name));
      const after = Math.max(...valuesOf(used.slice(middle), name));
      const hasGrown = after > before * mostGrowth && after - before > LEAST_MB;
      return hasGrown ? [`${name} ${format(before)} to ${format(after)}`] : [];
    });
  return grown.length === 0 ? `KEPT: ${promise}` : `BROKEN: ${promise}: ${grown.join('; ')}`;
}

function waitVerdict(waits: readonly LockWait[]): string {
  const long = waits.filter(({ waitedMs }) => waitedMs > MOST_WAIT_MS);
  if (long.length === 0) return `KEPT: no lock was waited for longer than ${MOST_WAIT_MS} ms`;
  const longest = long.reduce((most, one) => (one.waitedMs > most.waitedMs ? one : most));
  return (
    `BROKEN: ${long.length} locks were waited for longer than ${MOST_WAIT_MS} ms; the longest ${Math.round(longest.waitedMs)} ms, ` +
    `${longest.lock}, ${longest.statement}`
  );
}

/** The waits by statement, the most frequent first. */
export function describeWaits(waits: readonly LockWait[]): string[] {
  const byStatement = new Map<string, number[]>();
  for (const { statement, lock, waitedMs } of waits) {
    const name = `${lock.replace(/\d+/g, '#')}; ${statement}`;
    byStatement.set(name, [...(byStatement.get(name) ?? []), waitedMs]);
  }
  return [...byStatement]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, 10)
    .map(
      ([name, times]) =>
        `${times.length} waits of more than 100 ms, the longest ${Math.round(Math.max(...times))} ms: ${name}`,
    );
}

function valuesOf(samples: readonly TimedSample[], name: string): number[] {
  return samples.map(({ sample }) => sample[name] ?? NaN).filter((value) => !Number.isNaN(value));
}

/** Of a straight line through all samples, by least squares. */
function slopePerHour(samples: readonly TimedSample[], name: string): number {
  const points = samples.filter(({ sample }) => !Number.isNaN(sample[name] ?? NaN));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(points.map(({ minute }) => minute));
  const y = mean(points.map(({ sample }) => sample[name]!));
  const above = points.reduce((sum, one) => sum + (one.minute - x) * (one.sample[name]! - y), 0);
  const below = points.reduce((sum, one) => sum + (one.minute - x) ** 2, 0);
  return below === 0 ? 0 : (above / below) * 60;
}
