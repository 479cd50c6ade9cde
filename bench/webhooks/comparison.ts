import { row, type Row } from '../report/report.js';
import type { Phase } from './phase.js';

/** "Moves less than 10 %". */
const USUAL_MOST_RATIO = 1.1;

export interface Pair {
  readonly before: Phase;
  readonly after: Phase;
}

/** Measures both, one after the other, the order turning with every round; the first pair is thrown away. */
export async function alternate(
  rounds: number,
  title: string,
  subjects: { before(): Promise<Phase>; after(): Promise<Phase> },
): Promise<readonly Pair[]> {
  await subjects.before();
  await subjects.after();
  const pairs: Pair[] = [];
  for (let round = 0; round < rounds; round++) {
    const first = round % 2 === 0 ? await subjects.before() : null;
    const after = await subjects.after();
    const before = first ?? (await subjects.before());
    pairs.push({ before, after });
    const shown = `p95 ${before.p95Ms.toFixed(1)} and ${after.p95Ms.toFixed(1)} ms`;
    process.stderr.write(`${title} ${round + 1}/${rounds}: ${shown}\n`);
  }
  return pairs;
}

/** The ratio of the medians is what counts; those of single rounds show the noise. */
export function comparisonRows(
  pairs: readonly Pair[],
  names: { before: string; after: string },
  mostRatio = USUAL_MOST_RATIO,
): Row[] {
  const of = (which: keyof Pair, value: (one: Phase) => number | null): (number | null)[] =>
    pairs.map((pair) => value(pair[which]));
  const before = row(
    `${names.before}: p95`,
    'ms',
    of('before', (one) => one.p95Ms),
  );
  const after = row(
    `${names.after}: p95`,
    'ms',
    of('after', (one) => one.p95Ms),
  );
  return [
    { ...row('p95, median / median', 'x', [after.median / before.median]), limit: mostRatio },
    row(
      'p95, round by round',
      'x',
      pairs.map((pair) => pair.after.p95Ms / pair.before.p95Ms),
    ),
    ...(['before', 'after'] as const).flatMap((which) => [
      row(
        `${names[which]}: p50`,
        'ms',
        of(which, (one) => one.p50Ms),
      ),
      which === 'before' ? before : after,
      row(
        `${names[which]}: p99`,
        'ms',
        of(which, (one) => one.p99Ms),
      ),
      row(
        `${names[which]}: recorded`,
        '/s',
        of(which, (one) => one.recordedPerSecond),
      ),
      row(
        `${names[which]}: statements per event`,
        '',
        of(which, (one) => one.statementsPerEvent),
      ),
      row(
        `${names[which]}: CPU of PostgreSQL per event`,
        'us',
        of(which, (one) => one.databaseCpuUs),
      ),
    ]),
  ];
}
