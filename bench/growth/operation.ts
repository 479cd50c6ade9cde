import { quantile } from '../report/statistics.js';

/** Something that a service does all the time, on one database. */
export interface Operation {
  readonly name: string;
  /** Where the ones before would slow it: fewer than of the others. */
  readonly samples?: number;
  /** Number of the sample: which id it takes. */
  run(nth: number): Promise<void>;
}

/** Milliseconds, ascending. */
export interface Comparison {
  readonly name: string;
  readonly small: readonly number[];
  readonly large: readonly number[];
  readonly failure?: string;
}

/** At most, for one operation: one that takes seconds is measured less often. */
const BUDGET_MS = 30_000;
const LEAST_SAMPLES = 20;
const MOST_TEXT = 300;

/** The same operation on both databases in turn, so that what the machine does meanwhile is in both. */
export async function compare(small: Operation, large: Operation, samples: number): Promise<Comparison> {
  const results = { small: [] as number[], large: [] as number[] };
  const sides = [
    [small, results.small],
    [large, results.large],
  ] as const;
  const count = Math.min(samples, small.samples ?? samples);
  const warmUp = Math.ceil(Math.min(count, 30) / 2);
  const deadline = performance.now() + BUDGET_MS;
  try {
    for (let nth = 0; nth < count + warmUp; nth++) {
      for (const [operation, times] of nth % 2 === 0 ? sides : [...sides].reverse()) {
        const startedAtMs = performance.now();
        await operation.run(nth);
        if (nth >= warmUp) times.push(performance.now() - startedAtMs);
      }
      if (performance.now() > deadline && results.large.length >= LEAST_SAMPLES) break;
    }
    return { name: small.name, small: sorted(results.small), large: sorted(results.large) };
  } catch (error) {
    return { name: small.name, small: [], large: [], failure: (error as Error).message.slice(0, MOST_TEXT) };
  }
}

const MOST_RATIO = 1.2;
/** What one sample more or less moves: differences below it are no growth. */
const NOISE_MS = 0.5;

export function isSlower({ small, large }: Comparison): boolean {
  const [before, after] = [quantile(small, 0.95), quantile(large, 0.95)];
  return after / before > MOST_RATIO && after - before > NOISE_MS;
}

export function comparisonTable(comparisons: readonly Comparison[]): string[][] {
  const measured = comparisons.filter(({ failure }) => failure === undefined);
  const ms = (times: readonly number[], share: number): string => quantile(times, share).toFixed(2);
  return [
    ['operation (ms)', 'p50', 'p95 small', 'p99', 'p50', 'p95 large', 'p99', 'samples', 'ratio p95', ''],
    ...measured.map((one) => [
      one.name,
      ...[one.small, one.large].flatMap((times) => [0.5, 0.95, 0.99].map((share) => ms(times, share))),
      String(one.large.length),
      (quantile(one.large, 0.95) / quantile(one.small, 0.95)).toFixed(2),
      isSlower(one) ? `> ${MOST_RATIO}` : '',
    ]),
  ];
}

/** Ascending, as quantiles need them. */
export function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
