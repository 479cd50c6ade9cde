import { getRouteApi, Link } from '@tanstack/react-router';
import { useNewest } from '../api/newest.ts';
import { useSession } from '../api/session.ts';
import type { Esim, Mode, Topup } from '../api/types.ts';
import { orderCommand, readCommand } from '../components/commands.ts';
import { Badge, Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { bytes, counted, money, words } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { useMode } from '../layout/use-mode.ts';

const topupsRoute = getRouteApi('/top-ups');

const STATUSES = ['pending', 'processing', 'completed', 'failed'] as const;
const TONES = {
  pending: 'wait',
  processing: 'wait',
  completed: 'good',
  failed: 'bad',
} as const satisfies Record<Topup['status'], string>;

function added(topup: Topup): string {
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
    <>
      <h1>Top-ups</h1>
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
        columns={['Top-up', 'eSIM', 'Status', 'Adds', 'Price', 'Created']}
        row={(topup) => (
          <tr key={topup.id}>
            <td data-column="Top-up">
              <code>{topup.id}</code>
              {topup.auto && <span className="sub">automatic</span>}
              {topup.reference && <span className="sub">{topup.reference}</span>}
            </td>
            <td data-column="eSIM">
              <Link to="/esims/$esimId" params={{ esimId: topup.esim_id }} className="mono">
                {topup.esim_id}
              </Link>
            </td>
            <td data-column="Status">
              <Badge tone={TONES[topup.status]}>{topup.status}</Badge>
              {topup.failure && <span className="sub">{words(topup.failure.code)}</span>}
            </td>
            <td data-column="Adds">{added(topup)}</td>
            <td data-column="Price" className="number">
              {money(topup.price)}
            </td>
            <td data-column="Created">
              <Time at={topup.created_at} short />
            </td>
          </tr>
        )}
        empty={<NoTopup mode={mode} />}
      />
    </>
  );
}

/** Shows the next step: get an eSIM, or top up the newest one. */
function NoTopup({ mode }: { mode: Mode }) {
  const { api_url: apiUrl } = useSession();
  const esim = useNewest<Esim>('esims', mode);
  if (!esim)
    return (
      <Empty title="No top-ups yet" command={orderCommand(apiUrl, mode)}>
        <p>A top-up adds data or days to an eSIM. To get your first eSIM, place an order:</p>
      </Empty>
    );
  return (
    <Empty title="No top-ups yet" command={readCommand(apiUrl, `esims/${esim.id}/topup-packages`)}>
      <p>
        A top-up adds data or days to an eSIM. This call lists the packages that fit your newest eSIM. To buy
        one, send its id and the eSIM id to POST /v1/topups. For other eSIMs, see{' '}
        <Link to="/esims">eSIMs</Link>.
      </p>
    </Empty>
  );
}
