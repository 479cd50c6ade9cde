import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { every, oneQuery } from '../api/queries.ts';
import type { Order } from '../api/types.ts';
import { CopyFact } from '../components/copy-button.tsx';
import { ErrorNote, Loading } from '../components/feedback.tsx';
import { Facts } from '../components/facts.tsx';
import { money } from '../components/format.ts';
import { Table } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { InItsMode } from '../layout/in-its-mode.tsx';
import { MODE_NAMES } from '../layout/use-mode.ts';
import { OrderStatus } from './orders.tsx';

const orderRoute = getRouteApi('/orders/$orderId');

export function OrderPage() {
  const { orderId } = orderRoute.useParams();
  const query = useQuery({ ...oneQuery<Order>('orders', orderId), refetchInterval: every(3_000) });
  return (
    <>
      <p className="crumbs">
        <Link to="/orders">Orders</Link>
      </p>
      <h1 className="mono">{orderId}</h1>
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data && (
        <InItsMode what="order" mode={query.data.mode}>
          <OrderFacts order={query.data} />
        </InItsMode>
      )}
    </>
  );
}

function OrderFacts({ order }: { order: Order }) {
  return (
    <>
      <Facts
        entries={[
          ['Status', <OrderStatus key="status" status={order.status} />],
          ['Mode', MODE_NAMES[order.mode]],
          ['Reason', order.failure?.reason],
          ['Cancellation refused', order.cancel_failure?.reason],
          [
            'Replaces',
            order.replaces && (
              <Link key="replaces" to="/esims/$esimId" params={{ esimId: order.replaces }}>
                {order.replaces}
              </Link>
            ),
          ],
          ['Order', <CopyFact key="order" text={order.id} what="order id" />],
          ['Package', <code key="package">{order.package_id}</code>],
          ['Days', order.days],
          ['Issued', `${order.quantity_issued} of ${order.quantity}`],
          ['Total', money(order.total)],
          ['Refunded', order.refunded.amount === 0 ? null : money(order.refunded)],
          ['Your reference', order.reference],
          ['Created', <Time key="created" at={order.created_at} />],
          ['Issued at', order.issued_at && <Time key="issued" at={order.issued_at} />],
          ['Failed at', order.failed_at && <Time key="failed" at={order.failed_at} />],
          ...Object.entries(order.metadata).map(([name, value]) => [`metadata.${name}`, value] as const),
        ]}
      />
      {order.esims.length > 0 && (
        <>
          <h2>eSIMs</h2>
          <Table label="eSIMs in this order" columns={['eSIM', 'ICCID', 'Status']}>
            {order.esims.map((esim) => (
              <tr key={esim.esim_id}>
                <td data-column="eSIM">
                  <Link to="/esims/$esimId" params={{ esimId: esim.esim_id }} className="mono">
                    {esim.esim_id}
                  </Link>
                </td>
                <td data-column="ICCID">
                  <CopyFact text={esim.iccid} what="ICCID" />
                </td>
                <td data-column="Status">{esim.status}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  );
}
