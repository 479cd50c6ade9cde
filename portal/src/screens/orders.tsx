import { getRouteApi, Link } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Order } from '../api/types.ts';
import { orderCommand } from '../components/commands.ts';
import { Badge, Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { money, words } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { useMode } from '../layout/use-mode.ts';

const ordersRoute = getRouteApi('/orders');

const STATUSES = [
  'pending',
  'processing',
  'issued',
  'partially_issued',
  'failed',
  'canceling',
  'canceled',
] as const;
const TONES = {
  pending: 'wait',
  processing: 'wait',
  issued: 'good',
  partially_issued: 'wait',
  failed: 'bad',
  canceling: 'wait',
  canceled: 'off',
} as const satisfies Record<Order['status'], string>;

export function OrderStatus({ status }: { status: Order['status'] }) {
  return <Badge tone={TONES[status]}>{words(status)}</Badge>;
}

export function Orders() {
  const mode = useMode();
  const { mode: _mode, ...filters } = ordersRoute.useSearch();
  const { api_url: apiUrl } = useSession();
  return (
    <>
      <h1>Orders</h1>
      <UrlFilters
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[{ name: 'reference', label: 'Your reference' }]}
      />
      <List<Order>
        path="orders"
        mode={mode}
        filters={filters}
        label="Orders"
        columns={['Order', 'Package', 'Status', 'Issued', 'Total', 'Created']}
        row={(order) => (
          <tr key={order.id}>
            <td data-column="Order">
              <Link to="/orders/$orderId" params={{ orderId: order.id }} className="mono">
                {order.id}
              </Link>
              {order.reference && <span className="sub">{order.reference}</span>}
            </td>
            <td data-column="Package">
              <code>{order.package_id}</code>
            </td>
            <td data-column="Status">
              <OrderStatus status={order.status} />
              {order.failure && <span className="sub">{words(order.failure.code)}</span>}
            </td>
            <td data-column="Issued">
              {order.quantity_issued} of {order.quantity}
            </td>
            <td data-column="Total" className="number">
              {money(order.total)}
            </td>
            <td data-column="Created">
              <Time at={order.created_at} short />
            </td>
          </tr>
        )}
        empty={
          <Empty title="No orders yet" command={orderCommand(apiUrl, mode)}>
            <p>Place one with your key in ESIM_API_KEY:</p>
          </Empty>
        }
      />
    </>
  );
}
