import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { every, oneQuery } from '../api/queries.ts';
import { useScope } from '../api/session.ts';
import type { Call, Delivery, Esim, OrderWithTimeline } from '../api/types.ts';
import { Callout } from '../components/callout.tsx';
import { Copyable, Id } from '../components/copy-button.tsx';
import { Facts } from '../components/facts.tsx';
import { ErrorNote, Loading } from '../components/feedback.tsx';
import { capitalized, count, counted, milliseconds, money, words } from '../components/format.ts';
import { Table } from '../components/list.tsx';
import { usePackageName } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { Timeline } from '../components/timeline.tsx';
import { InItsMode, useIsShown } from '../layout/in-its-mode.tsx';
import { Screen } from '../layout/screen.tsx';
import { DeliveryCode, DeliveryNote, DeliveryStatus } from './endpoint/delivery-row.tsx';
import { UsageCard } from './esim-usage.tsx';
import { OrderActions } from './order-actions.tsx';
import { stepsOf } from './order-timeline.ts';
import { StatusCode } from './requests.tsx';

const orderRoute = getRouteApi('/orders/$orderId');

export function OrderPage() {
  const { orderId } = orderRoute.useParams();
  const query = useQuery({
    ...oneQuery<OrderWithTimeline>('orders', orderId),
    refetchInterval: every(3_000),
  });
  const order = query.data;
  const isShown = useIsShown(order?.mode);
  return (
    <Screen
      name={(isShown && order?.reference) || `Order …${orderId.slice(-6)}`}
      parent={{ to: '/orders', name: 'Orders' }}
      title={order && isShown ? <Title order={order} /> : 'Order'}
      under={
        order &&
        isShown && (
          <>
            <State of={order.status} />
            {order.reference && <Copyable text={order.reference} what="reference" />}
            <Id text={order.id} what="order id" />
            <Time at={order.created_at} />
          </>
        )
      }
      actions={order && isShown && <OrderActions key={orderId} order={order} />}
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {order && (
        <InItsMode what="order" mode={order.mode}>
          <Content order={order} />
        </InItsMode>
      )}
    </Screen>
  );
}

function Title({ order }: { order: OrderWithTimeline }) {
  const name = usePackageName({ id: order.package_id, mode: order.mode, days: order.days });
  return order.quantity === 1 ? name : `${order.quantity} × ${name}`;
}

function Content({ order }: { order: OrderWithTimeline }) {
  const [first] = order.esims;
  const { data: esim } = useQuery({
    ...oneQuery<Esim>('esims', first?.esim_id ?? ''),
    enabled: order.esims.length === 1,
    // As often as the order: the timeline and the usage card must agree.
    refetchInterval: every(3_000),
  });
  const steps = stepsOf(order, esim);
  return (
    <>
      {order.failure && (
        <Callout
          tone={order.status === 'failed' ? 'bad' : 'warn'}
          title={capitalized(words(order.failure.code))}
        >
          <p>{order.failure.reason}</p>
          <p>{effectOf(order)}</p>
        </Callout>
      )}
      {order.cancel_failure && (
        <Callout tone="warn" title="The order was not canceled">
          <p>{order.cancel_failure.reason}</p>
        </Callout>
      )}
      <div className="detail">
        {esim && <UsageCard esim={esim} link />}
        {order.esims.length === 1 && !esim && <section className="card usage" aria-hidden="true" />}
        <div className="story">
          {order.esims.length > 1 && <Esims order={order} />}
          {steps.length > 0 && (
            <section aria-labelledby="timeline">
              <div className="section-head">
                <h2 id="timeline">Timeline</h2>
              </div>
              <Timeline label="Timeline" steps={steps} />
            </section>
          )}
          {order.deliveries && order.deliveries.length > 0 && <Deliveries deliveries={order.deliveries} />}
          <ApiCall requestId={order.accepted_request_id} />
        </div>
        <aside className="rest" aria-label="Money and facts">
          <Money order={order} />
          <Details order={order} />
        </aside>
      </div>
    </>
  );
}

/** The effect of a failure on the eSIMs and the money. */
function effectOf({
  status,
  quantity,
  quantity_issued: issued,
  unit_price: price,
}: OrderWithTimeline): string {
  if (status === 'failed') return 'Nothing was issued, and nothing is charged.';
  const missing = quantity - issued;
  const returned = money({ ...price, amount: price.amount * missing });
  return `${issued} of ${counted(quantity, 'eSIM')} ${issued === 1 ? 'was' : 'were'} issued. ${returned} for the other ${count(missing)} is not charged.`;
}

function Esims({ order }: { order: OrderWithTimeline }) {
  return (
    <section aria-labelledby="esims">
      <div className="section-head">
        <h2 id="esims">eSIMs</h2>
      </div>
      <Table label="eSIMs in this order" columns={['eSIM', 'ICCID', 'Status']}>
        {order.esims.map((esim, at) => (
          <tr key={esim.esim_id}>
            <th scope="row">
              <Link to="/esims/$esimId" params={{ esimId: esim.esim_id }} className="row-link">
                eSIM {at + 1} of {order.quantity}
                <span className="hidden">, {esim.esim_id}</span>
              </Link>
            </th>
            <td data-label="ICCID">
              <Id text={esim.iccid} what="ICCID" />
            </td>
            <td className="at-state">
              <State of={esim.status} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Deliveries({ deliveries }: { deliveries: readonly Delivery[] }) {
  const hasEndpoints = new Set(deliveries.map((delivery) => delivery.endpoint_id)).size > 1;
  return (
    <section aria-labelledby="deliveries">
      <div className="section-head">
        <h2 id="deliveries">Webhook deliveries</h2>
      </div>
      <Table label="Webhook deliveries" columns={['Event', 'Delivery', 'Status code', ['Time', 'number']]}>
        {deliveries.map((delivery) => {
          const last = delivery.last_attempt;
          return (
            <tr key={delivery.id}>
              <th scope="row">
                <Link
                  to="/developers/webhooks/$endpointId"
                  params={{ endpointId: delivery.endpoint_id }}
                  search={({ mode }) => ({ ...(mode ? { mode } : {}), delivery: delivery.id })}
                  className="row-link"
                >
                  {delivery.event_type}
                  <span className="hidden">, delivery {delivery.id}</span>
                </Link>
                {hasEndpoints && (
                  <span className="second nowrap">Endpoint …{delivery.endpoint_id.slice(-6)}</span>
                )}
              </th>
              <td className="at-state">
                <DeliveryStatus delivery={delivery} />
                <DeliveryNote delivery={delivery} />
              </td>
              <td className="at-end">
                <DeliveryCode delivery={delivery} />
              </td>
              <td className="num at-time">
                <Time at={last?.started_at ?? delivery.created_at} as="short" />
              </td>
            </tr>
          );
        })}
      </Table>
    </section>
  );
}

/** The call that placed the order, for sessions that may read requests. */
function ApiCall({ requestId }: { requestId: string }) {
  const mayRead = useScope('requests:read');
  const { data: call } = useQuery({
    ...oneQuery<Call>('requests', requestId),
    enabled: mayRead,
    retry: false,
  });
  return (
    <section aria-labelledby="call">
      <div className="section-head">
        <h2 id="call">API call</h2>
        <span className="reveals">
          <Id text={requestId} what="request id" />
        </span>
      </div>
      {call ? (
        <div className="code">
          <div className="code-head">
            <Link to="/developers/requests/$requestId" params={{ requestId }}>
              <code>
                {call.method} {call.path}
              </code>
            </Link>
            <StatusCode status={call.status} />
            <span>{milliseconds(call.latency_ms)}</span>
          </div>
        </div>
      ) : (
        <p className="hint">
          {mayRead ? 'We keep calls for 30 days.' : 'Your access does not include API requests.'}
        </p>
      )}
    </section>
  );
}

function Money({ order }: { order: OrderWithTimeline }) {
  const isOpen = order.status === 'pending' || order.status === 'processing';
  const charged = { ...order.total, amount: order.total.amount - order.refunded.amount };
  return (
    <section className="card" aria-labelledby="money">
      <h2 id="money">Money</h2>
      <Facts
        kind="sums"
        small
        entries={[
          ['Unit price', money(order.unit_price)],
          ['Quantity', String(order.quantity)],
          ['Total', money(order.total)],
          ['Refunded', money(order.refunded)],
          [isOpen ? 'Reserved' : 'Charged', money(charged)],
        ]}
      />
    </section>
  );
}

/** The install links of all eSIMs, and when one was last opened. */
function LinkUse({ esims }: { esims: OrderWithTimeline['esims'] }) {
  const links = esims.reduce((sum, esim) => sum + esim.install_links.count, 0);
  const opened = esims
    .map((esim) => esim.install_links.last_opened_at)
    .filter((at) => at !== null)
    .sort()
    .at(-1);
  if (links === 0) return 'None';
  return (
    <>
      {count(links)}, {opened ? 'last opened ' : 'not opened yet'}
      {opened && <Time at={opened} as="short" />}
    </>
  );
}

function Details({ order }: { order: OrderWithTimeline }) {
  return (
    <section className="card" aria-labelledby="details">
      <h2 id="details">Details</h2>
      <Facts
        small
        entries={[
          ['Issued', `${order.quantity_issued} of ${order.quantity}`],
          ['Days', order.days && counted(order.days, 'day')],
          ['Package', <Id key="package" text={order.package_id} what="package id" />],
          [
            'Replaces',
            order.replaces && (
              <Link key="replaces" to="/esims/$esimId" params={{ esimId: order.replaces }}>
                eSIM …{order.replaces.slice(-6)}
              </Link>
            ),
          ],
          ['Install links', <LinkUse key="links" esims={order.esims} />],
          ['Issued at', order.issued_at && <Time key="issued" at={order.issued_at} as="short" />],
          ['Failed at', order.failed_at && <Time key="failed" at={order.failed_at} as="short" />],
          ...Object.entries(order.metadata).map(([name, value]) => [name, value] as const),
        ]}
      />
    </section>
  );
}
