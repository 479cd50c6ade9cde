import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { get } from '../../api/client.ts';
import { every, OVERVIEW_INTERVAL_MS, overviewQuery } from '../../api/queries.ts';
import { useScope, useSession } from '../../api/session.ts';
import type { Mode, Order, Overview, Page } from '../../api/types.ts';
import { Empty, ErrorNote, Loading } from '../../components/feedback.tsx';
import { useSetParameter } from '../../components/filters.tsx';
import { Table } from '../../components/list.tsx';
import { Segments } from '../../components/segments.tsx';
import { useOrderCommand } from '../../components/use-order-command.ts';
import { Screen } from '../../layout/screen.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { ORDER_COLUMNS, OrderRow } from '../order-row.tsx';
import { AttentionList } from './attention.tsx';
import { BalanceCard } from './balance-card.tsx';
import { Checklist } from './checklist.tsx';
import { PERIODS, type Period } from './periods.ts';
import { Stats } from './stats.tsx';

const homeRoute = getRouteApi('/');

const LATEST = 5;

const LEADS: Record<Period, string> = {
  '24h': 'The last 24 hours.',
  '7d': 'The last 7 days, with today. Days begin at 00:00 UTC.',
  '30d': 'The last 30 days, with today. Days begin at 00:00 UTC.',
};

/** The first screen: recent figures, and everything that needs somebody. */
export function Home() {
  const mode = useMode();
  const session = useSession();
  const set = useSetParameter();
  const { window: chosen } = homeRoute.useSearch();
  const period: Period = PERIODS.find(([value]) => value === chosen)?.[0] ?? '7d';
  const query = useQuery(overviewQuery(mode, period));
  return (
    <Screen
      name="Home"
      crumb={session.partner.name}
      lead={LEADS[period]}
      actions={
        <Segments
          legend="Period"
          options={PERIODS}
          value={period}
          onChange={(value) => set('window', value === '7d' ? '' : value)}
        />
      }
    >
      {query.isPending && <Loading lines={8} />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data && <Content overview={query.data} mode={mode} />}
    </Screen>
  );
}

function Content({ overview, mode }: { overview: Overview; mode: Mode }) {
  const { attention, checklist, wallet } = overview;
  return (
    <>
      {attention.length > 0 && <AttentionList items={attention} />}
      <div className="overview">
        <div className="overview-main">
          {isUnused(overview) ? <FirstOrder mode={mode} /> : <Stats overview={overview} />}
          <LatestOrders mode={mode} />
        </div>
        <div className="side-stack">
          {wallet && <BalanceCard wallet={wallet} period={overview.window} />}
          <Checklist steps={checklist} />
        </div>
      </div>
    </>
  );
}

/** Whether there is nothing to draw: no order and no delivery in the period and the one before. */
function isUnused({ orders, deliveries }: Overview): boolean {
  const steps = [...(orders?.current ?? []), ...(orders?.previous ?? [])];
  const sent = [...(deliveries?.current ?? []), ...(deliveries?.previous ?? [])];
  return (
    steps.every(({ count }) => count === 0) && sent.every(({ delivered, failed }) => delivered + failed === 0)
  );
}

function FirstOrder({ mode }: { mode: Mode }) {
  const command = useOrderCommand(mode);
  return (
    <Empty title="No orders in this period" icon="orders" command={command}>
      <p>
        Orders, their cost and their webhooks appear here as charts. Place an order with your key in
        ESIM_API_KEY:
      </p>
    </Empty>
  );
}

function LatestOrders({ mode }: { mode: Mode }) {
  const mayRead = useScope('orders:read');
  const { data } = useQuery({
    queryKey: ['orders', mode, 'latest'],
    enabled: mayRead,
    queryFn: async ({ signal }) => (await get<Page<Order>>('orders', { mode, limit: LATEST }, signal)).data,
    refetchInterval: every(OVERVIEW_INTERVAL_MS),
  });
  if (!data || data.length === 0) return null;
  return (
    <section aria-labelledby="latest">
      <div className="section-head">
        <h2 id="latest">Latest orders</h2>
        <Link to="/orders" className="small">
          All orders
        </Link>
      </div>
      <Table label="Latest orders" columns={ORDER_COLUMNS}>
        {data.map((order) => (
          <OrderRow key={order.id} order={order} />
        ))}
      </Table>
    </section>
  );
}
