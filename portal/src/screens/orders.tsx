import { getRouteApi } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Order } from '../api/types.ts';
import { orderCommand } from '../components/commands.ts';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { List } from '../components/list.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';
import { ORDER_COLUMNS, OrderRow } from './order-row.tsx';

const ordersRoute = getRouteApi('/orders');

const STATUSES = [
  'pending',
  'processing',
  'issued',
  'partially_issued',
  'failed',
  'canceling',
  'canceled',
] as const satisfies readonly Order['status'][];

export function Orders() {
  const mode = useMode();
  const { mode: _mode, ...filters } = ordersRoute.useSearch();
  const { api_url: apiUrl } = useSession();
  return (
    <Screen name="Orders">
      <UrlFilters
        times
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[{ name: 'reference', label: 'Your reference' }]}
      />
      <List<Order>
        path="orders"
        mode={mode}
        filters={filters}
        label="Orders"
        columns={ORDER_COLUMNS}
        row={(order) => <OrderRow key={order.id} order={order} />}
        empty={
          <Empty title="No orders yet" icon="orders" command={orderCommand(apiUrl, mode)}>
            <p>Place one with your key in ESIM_API_KEY:</p>
          </Empty>
        }
      />
    </Screen>
  );
}
