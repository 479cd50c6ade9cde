import type { ReactNode } from 'react';

type Props = {
  entries: readonly (readonly [name: string, value: ReactNode])[];
  /** `wide`: long names. `sums`: amounts, of which the last is the total. */
  kind?: 'wide' | 'sums';
  small?: boolean;
};

/** Names and values of one object; null values are omitted. */
export function Facts({ entries, kind, small = false }: Props) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return (
    <dl className={['facts', kind, small && 'small'].filter(Boolean).join(' ')}>
      {shown.map(([name, value], at) => (
        <div key={name} className={kind === 'sums' && at === shown.length - 1 ? 'total' : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
