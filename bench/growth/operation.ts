import { quantile } from '../report/statistics.js';

/** Something that a service does all the time, on one database. */
export interface Operation {
  readonly name: string;
  /** Where the ones before would slow it: fewer than of the others. */
  readonly samples?: number;
  /** Number of the sample: which id it takes. */
  run(nth: number): Promise<void>;
}

/** Milliseconds, ascending, of one database. */
interface Times {
  /** Of the first look at a row, whose pages no cache may hold: what the disk adds. */
  readonly first: readonly number[];
  /** Of the second, right after it: what the size of the tables adds. */
  readonly again: readonly number[];
}

export interface Comparison {
  readonly name: string;
  readonly small: Times;
  readonly large: Times;
  readonly failure?: string;
}

/** At most, for one operation: one that takes seconds is measured less often. */
const BUDGET_MS = 30_000;
const LEAST_SAMPLES = 20;
const MOST_TEXT = 300;

/**
 * The same operation on both databases in turn, so that what the machine does meanwhile is in both, and each sample twice: the
 * larger database has more pages than memory holds, the smaller one has not.
 */
export async function compare(small: Operation, large: Operation, samples: number): Promise<Comparison> {
  const sides = [small, large].map((operation) => ({
    operation,
    first: [] as number[],
    again: [] as number[],
  }));
  const [ofSmall, ofLarge] = sides as [(typeof sides)[number], (typeof sides)[number]];
  const count = Math.min(samples, small.samples ?? samples);
  const warmUp = Math.ceil(Math.min(count, 30) / 2);
  const deadline = performance.now() + BUDGET_MS;
  try {
    for (let nth = 0; nth < count + warmUp; nth++) {
      const inTurn = nth % 2 === 0 ? sides : [...sides].reverse();
      for (const look of ['first', 'again'] as const)
        for (const side of inTurn) {
          const ms = await timed(() => side.operation.run(nth));
          if (nth >= warmUp) side[look].push(ms);
        }
      if (performance.now() > deadline && ofLarge.again.length >= LEAST_SAMPLES) break;
    }
    return { name: small.name, small: ascending(ofSmall), large: ascending(ofLarge) };
  } catch (error) {
    const none = { first: [], again: [] };
    return {
      name: small.name,
      small: none,
      large: none,
      failure: (error as Error).message.slice(0, MOST_TEXT),
    };
  }
}

async function timed(run: () => Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  await run();
  return performance.now() - startedAtMs;
}

function ascending({ first, again }: Times): Times {
  return { first: sorted(first), again: sorted(again) };
}

const MOST_RATIO = 1.2;
/** What one sample more or less moves: differences below it are no growth. */
const NOISE_MS = 0.5;

export function isSlower({ small, large }: Comparison): boolean {
  const [before, after] = [quantile(small.again, 0.95), quantile(large.again, 0.95)];
  return after / before > MOST_RATIO && after - before > NOISE_MS;
}

export function comparisonTable(comparisons: readonly Comparison[]): string[][] {
  const measured = comparisons.filter(({ failure }) => failure === undefined);
  const ms = (times: readonly number[], share: number): string => quantile(times, share).toFixed(2);
  return [
    [
      'operation (ms)',
      ...['small p50', 'p95', 'large p50', 'p95', 'samples', 'ratio p95', ''],
      ...['first look: small p95', 'large p50', 'large p95'],
    ],
    ...measured.map((one) => [
      one.name,
      ...[one.small, one.large].flatMap(({ again }) => [0.5, 0.95].map((share) => ms(again, share))),
      String(one.large.again.length),
      (quantile(one.large.again, 0.95) / quantile(one.small.again, 0.95)).toFixed(2),
      isSlower(one) ? `> ${MOST_RATIO}` : '',
      ms(one.small.first, 0.95),
      ...[0.5, 0.95].map((share) => ms(one.large.first, share)),
    ]),
  ];
}

/** Ascending, as quantiles need them. */
export function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
