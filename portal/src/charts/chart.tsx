import type { ReactNode } from 'react';
import { Icon } from '../components/icon.tsx';

/** Heights in pixels: of the drawing, of its base line, and of the room for a value above the highest bar. */
export const HEIGHT = 116;
export const BASE = 94;
export const TOP = 18;

export type Key = { kind: 'now' | 'before' | 'trouble' | 'guide'; text: string };

type Props = {
  /** Names the data, such as `orders`. */
  what: string;
  /** The values in words, for screen readers. */
  label: string;
  height?: number;
  keys: readonly Key[];
  /** The same values as a table; the first column names the row. */
  columns: readonly string[];
  rows: readonly (readonly string[])[];
  children: ReactNode;
};

const CLASSES = { now: 'key', before: 'key before', trouble: 'key trouble', guide: 'key guide' } as const;

/** A drawing with its key, and a table behind it. Widths are percentages, so that it needs no observer. */
export function Chart({ what, label, height = HEIGHT, keys, columns, rows, children }: Props) {
  return (
    <figure className="chart">
      <svg height={height} role="img" aria-label={label}>
        {children}
      </svg>
      <figcaption className="chart-foot">
        {keys.map(({ kind, text }) => (
          <span key={kind} className={CLASSES[kind]}>
            {text}
          </span>
        ))}
        <details className="as-table">
          <summary title="Show as table">
            <Icon name="table" />
            <span className="hidden">Show {what} as a table</span>
          </summary>
          <div className="table-wrap" tabIndex={0} role="group" aria-label={`${what}, scrollable`}>
            <table aria-label={what}>
              <thead>
                <tr>
                  {columns.map((column, at) => (
                    <th key={column} scope="col" className={at === 0 ? undefined : 'num'}>
                      {column}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map(([name, ...values]) => (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    {values.map((value, at) => (
                      <td key={columns[at + 1]} className="num">
                        {value}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      </figcaption>
    </figure>
  );
}

export const percentOf = (share: number): string => `${Number((share * 100).toFixed(2))}%`;
