import { type Spread, spreadOf } from './statistics.js';

export interface Row extends Spread {
  readonly figure: string;
  /** `x` for a ratio, empty for a number. */
  readonly unit: string;
  /** The least that a ratio should be. */
  readonly target?: number;
  /** The most that a figure should be. */
  readonly limit?: number;
}

/** The outcome of one subcommand. */
export interface Section {
  readonly title: string;
  readonly notes: readonly string[];
  readonly rows: readonly Row[];
  /** What is no figure with rounds; the first line names the columns. */
  readonly table?: readonly (readonly string[])[];
}

/** A row from one value per round; rounds that could not be measured (null) are left out. */
export function row(figure: string, unit: string, values: readonly (number | null)[], target?: number): Row {
  const measured = values.filter((value) => value !== null);
  return { figure, unit, ...spreadOf(measured), ...(target === undefined ? {} : { target }) };
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

/** The first column to the left, the others to the right. */
export function align(cells: readonly (readonly string[])[]): string[] {
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  return cells.map((line) =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
}

/** What was wanted of the median, and whether it is so. */
function verdictOf({ median, target, limit }: Row): [string, string] {
  if (target !== undefined) return [`>= ${format(target)}`, median >= target ? 'met' : 'MISSED'];
  if (limit !== undefined) return [`<= ${format(limit)}`, median <= limit ? 'met' : 'MISSED'];
  return ['', ''];
}

/** With as many digits as it is worth. */
export function format(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en');
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}
