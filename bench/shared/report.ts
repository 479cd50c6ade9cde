import path from 'node:path';

/** The project's root. This file runs as dist/bench/shared/report.js. */
export const ROOT = path.resolve(import.meta.dirname, '../../..');
/** Ignored by Git. */
export const RESULTS = path.join(ROOT, 'bench/results');
/** The npm scripts use the same flags. Source maps cost memory, so measurements must include them. */
export const NODE_FLAGS = ['--enable-source-maps'];

/** One figure over its rounds. */
export interface Row {
  readonly figure: string;
  /** `x` for a ratio, empty for a plain number. */
  readonly unit: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
  /** The median should be at least this. */
  readonly target?: number;
  /** The median should be at most this. */
  readonly limit?: number;
}

/** The outcome of one measurement. */
export interface Section {
  readonly title: string;
  readonly notes: readonly string[];
  readonly rows: readonly Row[];
  /** Results that are not figures over rounds. The first line names the columns. */
  readonly table?: readonly (readonly string[])[];
}

/** Makes a row from one value per round. Skips rounds that could not be measured (null). */
export function row(
  figure: string,
  unit: string,
  values: readonly (number | null)[],
  goal: { readonly target?: number; readonly limit?: number } = {},
): Row {
  const sorted = ascending(values.filter((value) => value !== null));
  const [min = NaN, max = NaN] = [sorted[0], sorted.at(-1)];
  return { figure, unit, median: quantile(sorted, 0.5), min, max, rounds: sorted.length, ...goal };
}

/** @returns a function that makes a row from rounds of one kind: `figure(name, unit, value of a round)` */
export function figuresOf<Round>(rounds: readonly Round[], prefix = '') {
  return (
    name: string,
    unit: string,
    of: (round: Round) => number | null,
    goal?: Parameters<typeof row>[3],
  ): Row => row(`${prefix}${name}`, unit, rounds.map(of), goal);
}

/**
 * Interpolates linearly between the two nearest values.
 * @param sorted ascending
 */
export function quantile(sorted: readonly number[], share: number): number {
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? NaN;
  const above = sorted[Math.ceil(position)] ?? NaN;
  return below + (above - below) * (position - Math.floor(position));
}

export function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

/** Prints progress to stderr. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

export function renderSection({ title, notes, rows, table }: Section): string {
  const lines = [...(rows.length > 0 ? align(cellsOf(rows)) : []), ...(table ? align(table) : [])];
  return [`\n${title}`, ...lines, ...notes.map((note) => `  ${note}`)].join('\n');
}

function cellsOf(rows: readonly Row[]): string[][] {
  return [
    ['', 'median', 'min', 'max', 'rounds', 'target', ''],
    ...rows
      .filter((one) => one.rounds > 0)
      .map((one) => [
        `${one.figure}${one.unit === 'x' || one.unit === '' ? '' : ` (${one.unit})`}`,
        ...[one.median, one.min, one.max].map(format),
        String(one.rounds),
        ...verdictOf(one),
      ]),
  ];
}

/** Aligns the first column left and the others right. */
function align(cells: readonly (readonly string[])[]): string[] {
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  return cells.map((line) => line.map(pad).join('  ').trimEnd());
}

function verdictOf({ median, target, limit }: Row): [string, string] {
  if (target !== undefined) return [`>= ${format(target)}`, median >= target ? 'met' : 'MISSED'];
  if (limit !== undefined) return [`<= ${format(limit)}`, median <= limit ? 'met' : 'MISSED'];
  return ['', ''];
}

/** Formats a number with three or four significant digits. */
export function format(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en');
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}
