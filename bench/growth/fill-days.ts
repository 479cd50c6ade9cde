import { idFloor } from '../../src/common/ids.js';
import { dayOf, partitionName } from '../../src/infra/partition-days.js';
import type { Statement } from './fill-orders.js';
import { endpointSlot, keySlot, type Numbers, PARTNER_ID, rowsOf } from './fill-sql.js';
import { ENDPOINTS } from './scale.js';

type Mode = 'live' | 'sandbox';

/** A day of a table that is partitioned by day: made apart, filled, and then attached, which builds its indexes. */
export interface DayStatement extends Statement {
  readonly partition: string;
  readonly bounds: string;
}

const EVENT_ID = `growth.id('evt', ms, n)`;
const EVENT_TYPE = `CASE WHEN h / 13 % 20 < 11 THEN 'order.issued' WHEN h / 13 % 20 < 17 THEN 'esim.activated'
  WHEN h / 13 % 20 < 19 THEN 'esim.usage.threshold' ELSE 'esim.expired' END`;
const DELIVERY_STATUS = `CASE WHEN (h + j) % 100 < 97 THEN 'delivered' WHEN (h + j) % 100 < 99 THEN 'failed' ELSE 'discarded' END`;

/** The events of a mode's day, about as long as real ones. @param positions of the feed: the first one's */
export function eventsOf(mode: Mode, numbers: Numbers, positions: number): DayStatement {
  return ofDay(`events_${mode}`, numbers, 'evt', {
    columns: 'id, partner_id, mode, type, body, position, created_at',
    select: `SELECT ${EVENT_ID}, ${PARTNER_ID}, '${mode}', ${EVENT_TYPE},
               '{"id":"' || ${EVENT_ID} || '","type":"' || ${EVENT_TYPE} || '","created_at":"' || at || '","data":{"order_id":"' ||
               growth.id('ord', ms, n) || '","esim_id":"' || growth.id('esim', ms, n) || '","iccid":"8910' || lpad(n::text, 16, '0') || '"}}',
               ${positions} + k, at
             FROM ${rowsOf(numbers)}`,
  });
}

/** Each event of the day, sent to all endpoints of its partner. */
export function deliveriesOf(mode: Mode, numbers: Numbers): DayStatement {
  return ofDay(`webhook_deliveries_${mode}`, numbers, null, {
    columns: `id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, attempt_count, counted_attempts, fence,
              created_at, delivered_at, failed_at, ended_at`,
    select: `SELECT ${deliveryId()}, ${endpointId(mode)}, ${PARTNER_ID}, '${mode}', ${EVENT_ID}, ${EVENT_TYPE}, 'event', status, 1, 1, 1,
               at, CASE WHEN status = 'delivered' THEN at END, CASE WHEN status = 'failed' THEN at END, at
             FROM (SELECT *, ${DELIVERY_STATUS} AS status FROM ${rowsOf(numbers)}, generate_series(0, ${ENDPOINTS - 1}) AS j OFFSET 0) AS d`,
  });
}

/** The last attempt of each delivery of a day, of both modes. */
export function attemptsOf(modes: readonly (readonly [Mode, Numbers])[]): DayStatement {
  const selects = modes.map(
    ([mode, numbers]) => `SELECT ${deliveryId()}, ${endpointId(mode)}, ${PARTNER_ID}, 1, at, status,
        CASE WHEN status = 'delivered' THEN 200 ELSE 503 END, (h % 400)::int, at
      FROM (SELECT *, CASE WHEN ${DELIVERY_STATUS} = 'delivered' THEN 'delivered' ELSE 'failed' END AS status
            FROM ${rowsOf(numbers)}, generate_series(0, ${ENDPOINTS - 1}) AS j OFFSET 0) AS a`,
  );
  return ofDay('webhook_attempts', modes[0]![1], null, {
    columns:
      'delivery_id, endpoint_id, partner_id, number, started_at, outcome, status_code, latency_ms, recorded_at',
    select: selects.join(' UNION ALL '),
  });
}

/** The call log of a day. */
export function callsOf(numbers: Numbers): DayStatement {
  const key = (mode: Mode): string => `growth.owned('key', p, ${keySlot(mode)})`;
  return ofDay('api_calls', numbers, null, {
    columns:
      'request_id, key_id, partner_id, mode, method, route, path, status, latency_ms, remote_address, created_at',
    select: `SELECT growth.id('req', ms, n), CASE WHEN n % 10 < 3 THEN ${key('sandbox')} ELSE ${key('live')} END, ${PARTNER_ID},
               CASE WHEN n % 10 < 3 THEN 'sandbox' ELSE 'live' END, CASE WHEN n % 3 = 0 THEN 'POST' ELSE 'GET' END, '/v1/orders',
               '/v1/orders', CASE WHEN n % 100 = 1 THEN 404 WHEN n % 1000 = 2 THEN 500 WHEN n % 3 = 0 THEN 202 ELSE 200 END,
               h % 50, '203.0.113.7', at
             FROM ${rowsOf(numbers)}`,
  });
}

const deliveryId = (): string => `growth.id('dlv', ms, n * ${ENDPOINTS} + j)`;
const endpointId = (mode: Mode): string => `growth.owned('whe', p, ${endpointSlot(mode, 0)} + j)`;

interface Insert {
  readonly columns: string;
  readonly select: string;
}

function ofDay(
  table: string,
  { fromMs }: Numbers,
  idPrefix: 'evt' | null,
  { columns, select }: Insert,
): DayStatement {
  const day = dayOf(new Date(fromMs));
  const next = dayOf(day, 1);
  const partition = partitionName(table, day);
  const [from, to] = idPrefix
    ? [idFloor(idPrefix, day), idFloor(idPrefix, next)]
    : [day.toISOString(), next.toISOString()];
  return {
    table,
    partition,
    bounds: `FROM ('${from}') TO ('${to}')`,
    sql: `INSERT INTO ${partition} (${columns}) ${select}`,
  };
}
