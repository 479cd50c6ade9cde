import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { get } from '../../api/client.ts';
import type { Destination, Mode, Page } from '../../api/types.ts';
import { Empty, ErrorNote, Loading } from '../../components/feedback.tsx';
import { PickText } from '../../components/form.tsx';
import { counted, money } from '../../components/format.ts';
import { Table } from '../../components/list.tsx';
import { Segments } from '../../components/segments.tsx';
import { Screen } from '../../layout/screen.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { Shelf } from './shelf.tsx';

const catalogRoute = getRouteApi('/catalog');

const KINDS = [
  ['country', 'Countries'],
  ['region', 'Regions'],
  ['global', 'Global'],
] as const satisfies readonly (readonly [Destination['kind'], string])[];

const destinationsQuery = (mode: Mode) => ({
  queryKey: ['destinations', mode],
  queryFn: async ({ signal }: { signal: AbortSignal }) =>
    (await get<Page<Destination>>('destinations', { mode }, signal)).data,
  staleTime: 60_000,
});

/** Everything that the partner may sell: destinations, or the packages of one. */
export function Catalog() {
  const { to } = catalogRoute.useSearch();
  const mode = useMode();
  const query = useQuery(destinationsQuery(mode));
  if (to !== undefined)
    return <Shelf key={to} code={to} destination={query.data?.find(({ code }) => code === to)} />;
  return (
    <Screen name="Catalog" lead="Everything that you can sell, at your prices. Choose a destination.">
      {query.isPending && <Loading lines={8} />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data && <Destinations destinations={query.data} />}
    </Screen>
  );
}

function Destinations({ destinations }: { destinations: readonly Destination[] }) {
  const [kind, setKind] = useState<Destination['kind']>('country');
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const shown = destinations
    .filter((one) => one.kind === kind && `${one.name} ${one.code}`.toLowerCase().includes(wanted))
    .toSorted((a, b) => a.name.localeCompare(b.name));
  if (destinations.length === 0)
    return (
      <Empty title="No packages yet" icon="catalog">
        <p>The catalog of this mode is empty. It is read from the wholesalers several times a day.</p>
      </Empty>
    );
  return (
    <div className="stack">
      <div className="filters" role="search" aria-label="Filters">
        <Segments legend="Kind of destination" options={KINDS} value={kind} onChange={setKind} />
        <PickText label="Name" value={text} onChange={setText} placeholder="any" />
      </div>
      {shown.length === 0 ? (
        <Empty title="No matches" icon="search">
          <p>Remove a filter to see more.</p>
        </Empty>
      ) : (
        <Table
          label="Destinations"
          columns={['Destination', 'Plans', ['Packages', 'number'], ['From', 'number']]}
        >
          {shown.map((one) => (
            <tr key={one.code}>
              <th scope="row">
                <div className="main-cell">
                  <span className="place" aria-hidden="true">
                    {one.code.slice(0, 2).toUpperCase()}
                  </span>
                  <div>
                    <Link to="/catalog" search={(last) => ({ ...last, to: one.code })} className="row-link">
                      {one.name}
                    </Link>
                  </div>
                </div>
              </th>
              <td data-label="Plans">
                {['Allowances', one.has_daily ? 'day passes' : '', one.has_unlimited ? 'unlimited' : '']
                  .filter(Boolean)
                  .join(', ')}
              </td>
              <td data-label="Packages" className="num">
                {counted(one.packages, 'package')}
              </td>
              <td className="num at-end">{money(one.price_from)}</td>
            </tr>
          ))}
        </Table>
      )}
    </div>
  );
}
