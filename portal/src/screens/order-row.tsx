import { Link } from '@tanstack/react-router';
import type { Order } from '../api/types.ts';
import { capitalized, money, words } from '../components/format.ts';
import type { Column } from '../components/list.tsx';
import { PackageName } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';

export const ORDER_COLUMNS = [
  'Package and your reference',
  'Status',
  ['eSIMs', 'number'],
  ['Cost', 'number'],
  ['Time', 'number'],
] as const satisfies readonly Column[];

/** The price of what was issued, less what was refunded. A failed order costs nothing. */
function costOf({ total, refunded }: Order): string {
  return money({ ...total, amount: Math.max(0, total.amount - refunded.amount) });
}

export function OrderRow({ order }: { order: Order }) {
  return (
    <tr>
      <th scope="row">
        <Link to="/orders/$orderId" params={{ orderId: order.id }} className="row-link">
          <PackageName id={order.package_id} mode={order.mode} days={order.days} />
          <span className="hidden">, order {order.id}</span>
        </Link>
        {order.reference && <span className="second">{order.reference}</span>}
      </th>
      <td className="at-state">
        <State of={order.status} />
        {order.failure && <span className="second">{capitalized(words(order.failure.code))}</span>}
      </td>
      <td data-label="eSIMs" className="num">
        {order.quantity_issued} of {order.quantity}
      </td>
      <td className="num at-end">{costOf(order)}</td>
      <td className="num at-time">
        <Time at={order.created_at} as="short" />
      </td>
    </tr>
  );
}
