import { getRouteApi, Link } from '@tanstack/react-router';
import { useNewest } from '../api/newest.ts';
import { useSession } from '../api/session.ts';
import type { Esim, Mode, Topup } from '../api/types.ts';
import { orderCommand, readCommand } from '../components/commands.ts';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { bytes, capitalized, counted, money, words } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { PackageName } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

const topupsRoute = getRouteApi('/top-ups');

const STATUSES = ['pending', 'processing', 'completed', 'failed'] as const;

/** The data and days that a top-up adds, such as `1 GB, 7 days`. */
export function added(topup: Topup): string {
  const parts = [
    topup.data_added_bytes === null ? '' : bytes(topup.data_added_bytes),
    topup.validity_added_days === 0 ? '' : counted(topup.validity_added_days, 'day'),
  ];
  return parts.filter(Boolean).join(', ') || '–';
}

export function Topups() {
  const mode = useMode();
  const { mode: _mode, ...filters } = topupsRoute.useSearch();
  return (
    <Screen name="Top-ups">
      <UrlFilters
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[
          { name: 'esim_id', label: 'eSIM id', placeholder: 'esim_…' },
          { name: 'reference', label: 'Your reference' },
        ]}
      />
      <List<Topup>
        path="topups"
        mode={mode}
        filters={filters}
        label="Top-ups"
        columns={['Package and your reference', 'Status', 'Adds', ['Price', 'number'], ['Time', 'number']]}
        row={(topup) => (
          <tr key={topup.id}>
            <th scope="row">
              <Link to="/top-ups/$topupId" params={{ topupId: topup.id }} className="row-link">
                <PackageName id={topup.package_id} mode={topup.mode} days={topup.days} />
                <span className="hidden">, top-up {topup.id}</span>
              </Link>
              {(topup.reference ?? (topup.auto ? 'Automatic' : null)) && (
                <span className="second">{topup.reference ?? 'Automatic'}</span>
              )}
            </th>
            <td className="at-state">
              <State of={topup.status} />
              {topup.failure && <span className="second">{capitalized(words(topup.failure.code))}</span>}
            </td>
            <td data-label="Adds">{added(topup)}</td>
            <td className="num at-end">{money(topup.price)}</td>
            <td className="num at-time">
              <Time at={topup.created_at} as="short" />
            </td>
          </tr>
        )}
        empty={<NoTopup mode={mode} />}
      />
    </Screen>
  );
}

/** Shows the next step: get an eSIM, or top up the newest one. */
function NoTopup({ mode }: { mode: Mode }) {
  const { api_url: apiUrl } = useSession();
  const esim = useNewest<Esim>('esims', mode);
  if (!esim)
    return (
      <Empty title="No top-ups yet" icon="topup" command={orderCommand(apiUrl, mode)}>
        <p>A top-up adds data or days to an eSIM. To get your first eSIM, place an order:</p>
      </Empty>
    );
  return (
    <Empty
      title="No top-ups yet"
      icon="topup"
      command={readCommand(apiUrl, `esims/${esim.id}/topup-packages`)}
    >
      <p>
        A top-up adds data or days to an eSIM. This call lists the packages that fit your newest eSIM. To buy
        one, send its id and the eSIM id to POST /v1/topups. For other eSIMs, see{' '}
        <Link to="/esims">eSIMs</Link>.
      </p>
    </Empty>
  );
}
