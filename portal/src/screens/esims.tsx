import { getRouteApi, Link } from '@tanstack/react-router';
import { useNewest } from '../api/newest.ts';
import { useSession } from '../api/session.ts';
import type { Esim, Mode, Order } from '../api/types.ts';
import { orderCommand } from '../components/commands.ts';
import { Badge, Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { bytes } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { useMode } from '../layout/use-mode.ts';

const esimsRoute = getRouteApi('/esims');

const STATUSES = ['issued', 'active', 'depleted', 'expired', 'suspended', 'canceled'] as const;
const TONES = {
  issued: 'wait',
  active: 'good',
  depleted: 'bad',
  expired: 'off',
  suspended: 'bad',
  canceled: 'off',
} as const satisfies Record<Esim['status'], string>;

export function EsimStatus({ status }: { status: Esim['status'] }) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

/** For example `1.2 GB of 3 GB`, or the used amount of an unlimited eSIM. */
export function usage({ data }: Esim): string {
  if (data.unlimited || data.total_bytes === null) return `${bytes(data.used_bytes)} used, unlimited`;
  return `${bytes(data.used_bytes)} of ${bytes(data.total_bytes)}`;
}

export function Esims() {
  const mode = useMode();
  const { mode: _mode, ...filters } = esimsRoute.useSearch();
  return (
    <>
      <h1>eSIMs</h1>
      <UrlFilters
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[
          { name: 'iccid', label: 'ICCID', pattern: /^\d{18,20}$/, shape: '18 to 20 digits' },
          { name: 'order_id', label: 'Order id', placeholder: 'ord_…' },
        ]}
      />
      <List<Esim>
        path="esims"
        mode={mode}
        filters={filters}
        label="eSIMs"
        columns={['eSIM', 'ICCID', 'Status', 'Data', 'Expires', 'Created']}
        row={(esim) => (
          <tr key={esim.id}>
            <td data-column="eSIM">
              <Link to="/esims/$esimId" params={{ esimId: esim.id }} className="mono">
                {esim.id}
              </Link>
            </td>
            <td data-column="ICCID">
              <code>{esim.iccid}</code>
            </td>
            <td data-column="Status">
              <EsimStatus status={esim.status} />
            </td>
            <td data-column="Data">{usage(esim)}</td>
            <td data-column="Expires">{esim.expires_at ? <Time at={esim.expires_at} short /> : '–'}</td>
            <td data-column="Created">
              <Time at={esim.created_at} short />
            </td>
          </tr>
        )}
        empty={<NoEsim mode={mode} />}
      />
    </>
  );
}

/** Shows a command that gets the first eSIM: it orders the package of the newest order, if there is one. */
function NoEsim({ mode }: { mode: Mode }) {
  const { api_url: apiUrl } = useSession();
  const packageId = useNewest<Order>('orders', mode)?.package_id;
  return (
    <Empty title="No eSIMs yet" command={orderCommand(apiUrl, mode, packageId)}>
      <p>
        Orders issue eSIMs. See <Link to="/orders">Orders</Link>, or place one with your key in ESIM_API_KEY:
      </p>
    </Empty>
  );
}
