import { getRouteApi, Link } from '@tanstack/react-router';
import { useNewest } from '../api/newest.ts';
import type { Esim, Mode, Order } from '../api/types.ts';
import { Id } from '../components/copy-button.tsx';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { bytes } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { PackageName } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { useOrderCommand } from '../components/use-order-command.ts';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

const esimsRoute = getRouteApi('/esims');

const STATUSES = ['issued', 'active', 'depleted', 'expired', 'suspended', 'canceled'] as const;

/** For example `1.2 GB of 3 GB`, or the used amount of an unlimited eSIM. */
export function usage({ data }: Esim): string {
  if (data.unlimited || data.total_bytes === null) return `${bytes(data.used_bytes)} used, unlimited`;
  return `${bytes(data.used_bytes)} of ${bytes(data.total_bytes)}`;
}

export function Esims() {
  const mode = useMode();
  const { mode: _mode, ...filters } = esimsRoute.useSearch();
  return (
    <Screen name="eSIMs">
      <UrlFilters
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[
          { name: 'iccid', label: 'ICCID', pattern: /^\d{18,20}$/, placeholder: '18 to 20 digits' },
          { name: 'order_id', label: 'Order id', placeholder: 'ord_…' },
          { name: 'label', label: 'Label' },
        ]}
      />
      <List<Esim>
        path="esims"
        mode={mode}
        filters={filters}
        label="eSIMs"
        columns={[
          'Package and label',
          'ICCID',
          'Status',
          ['Data used', 'number'],
          'Expires',
          ['Created', 'number'],
        ]}
        row={(esim) => (
          <tr key={esim.id}>
            <th scope="row">
              <Link to="/esims/$esimId" params={{ esimId: esim.id }} className="row-link">
                <PackageName id={esim.package_id} mode={esim.mode} days={esim.days} />
                <span className="hidden">, eSIM {esim.id}</span>
              </Link>
              {esim.label && <span className="second">{esim.label}</span>}
            </th>
            <td data-label="ICCID">
              <Id text={esim.iccid} what="ICCID" />
            </td>
            <td className="at-state">
              <State of={esim.status} />
            </td>
            <td className="num at-end">{usage(esim)}</td>
            <td data-label="Expires">{esim.expires_at ? <Time at={esim.expires_at} as="short" /> : '–'}</td>
            <td className="num at-time">
              <Time at={esim.created_at} as="short" />
            </td>
          </tr>
        )}
        empty={<NoEsim mode={mode} />}
      />
    </Screen>
  );
}

/** Shows a command that gets the first eSIM: it orders the package of the newest order, if there is one. */
function NoEsim({ mode }: { mode: Mode }) {
  const command = useOrderCommand(mode, useNewest<Order>('orders', mode)?.package_id);
  return (
    <Empty title="No eSIMs yet" icon="sim" command={command}>
      <p>
        Orders issue eSIMs. See <Link to="/orders">Orders</Link>, or place one with your key in ESIM_API_KEY:
      </p>
    </Empty>
  );
}
