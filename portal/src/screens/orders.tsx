import { getRouteApi } from '@tanstack/react-router';
import type { Order } from '../api/types.ts';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { List } from '../components/list.tsx';
import { useOrderCommand } from '../components/use-order-command.ts';
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
  const command = useOrderCommand(mode);
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
          <Empty title="No orders yet" icon="orders" command={command}>
            <p>Place one with your key in ESIM_API_KEY:</p>
          </Empty>
        }
      />
    </Screen>
  );
}
