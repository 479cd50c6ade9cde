import type { ChaosBed } from './bed.js';
import type { RandomFaults } from './faults.js';
import type { FeedReader, Load } from './load.js';
import { runCommand } from './processes.js';

/** One promise and its breaches. */
export interface Check {
  readonly promise: string;
  readonly breaches: readonly string[];
  /** Number of items checked. */
  readonly count: number;
}

interface OrderRow {
  readonly id: string;
  readonly mode: 'sandbox' | 'live';
  readonly provider: string;
  readonly reference: string;
  readonly days: number | null;
  readonly package_id: string;
  readonly status: string;
  readonly quantity: number;
  readonly issued: number;
  readonly failed: number;
  readonly esims: number;
  readonly sandbox_purchases: number;
  /** Number of `order.issued` and `order.failed` events. */
  readonly outcomes: number;
  /** Number of `order.failed` events. */
  readonly failures: number;
  /** Placements sent upstream if any was sent twice and support received an alert; otherwise 0. */
  readonly repeated: number;
  /** Whether support ended it. */
  readonly by_support: boolean;
}

/**
 * Maximum attempts to one endpoint at once, across all workers (D34). A frozen worker's attempts stay open alongside
 * its successor's.
 */
const MAX_OPEN = 16;
const ENDED = new Set(['issued', 'partially_issued', 'failed']);

/** Checks every promise once no work is left. */
export async function judge(
  bed: ChaosBed,
  load: Load,
  readers: readonly FeedReader[],
): Promise<readonly Check[]> {
  const orders = await readOrders(bed);
  return [
    acceptedOrders(load, orders),
    outcomes(orders),
    await purchases(bed, orders),
    await money(bed),
    await books(bed),
    await deliveries(bed),
    await feeds(bed, readers),
    await alerts(bed),
    answers(load),
  ];
}

function acceptedOrders(load: Load, orders: readonly OrderRow[]): Check {
  const known = new Map(orders.map((order) => [order.id, order]));
  const accepted = [...load.accepted.values()];
  const ids = new Set(accepted.map(({ orderId }) => orderId));
  const breaches = accepted
    .filter(({ orderId }) => !known.has(orderId))
    .map(({ orderId }) => `${orderId} got a 202 but does not exist`);
  if (ids.size < accepted.length) breaches.push('two purchases share an order');
  // A purchase without a timely response may still have been accepted. No further orders may exist.
  const surplus = orders.length - ids.size;
  if (surplus > load.unanswered) breaches.push(`${surplus} orders that no response reported`);
  return { promise: 'each accepted order exists, once for its key', breaches, count: accepted.length };
}

function outcomes(orders: readonly OrderRow[]): Check {
  const breaches = orders.flatMap((order) => {
    const { id, status, quantity, issued, failed, esims } = order;
    const wrong = [];
    if (!ENDED.has(status)) wrong.push(`is ${status}`);
    if (issued + failed !== quantity) wrong.push(`issued ${issued} and failed ${failed} of ${quantity}`);
    if (esims !== issued) wrong.push(`has ${esims} eSIMs but issued ${issued}`);
    if (order.outcomes !== 1) wrong.push(`has ${order.outcomes} outcome events`);
    if (order.failures !== Number(status === 'failed'))
      wrong.push(`is ${status}, but its event says otherwise`);
    if (order.mode === 'sandbox' && !order.by_support && issued !== issuable(order))
      wrong.push(`issued ${issued} of ${quantity} ${order.package_id}`);
    return wrong.map((what) => `${id} ${what}`);
  });
  return {
    promise: 'each order ended once, issued or refunded, with one event',
    breaches,
    count: orders.length,
  };
}

/** Number of eSIMs that the Sandbox issues for its test packages. */
function issuable({ package_id: packageId, quantity }: OrderRow): number {
  if (packageId === 'pkg_test_out_of_stock') return 0;
  return packageId === 'pkg_test_partial' ? Math.ceil(0.6 * quantity) : quantity;
}

/** Compares the orders with the wholesalers' own records. */
async function purchases(bed: ChaosBed, orders: readonly OrderRow[]): Promise<Check> {
  const access = await bed.simulators.esimAccess.state<{
    purchases: Record<string, number>;
    days: Record<string, number>;
  }>();
  const zendit = await bed.simulators.zendit.state<{
    purchases: Record<string, { status: string }>;
    duplicatePosts: number;
  }>();
  const zenditSold: Record<string, number> = {};
  for (const [id, { status }] of Object.entries(zendit.purchases)) {
    const reference = id.slice(0, id.lastIndexOf('-'));
    if (status !== 'FAILED') zenditSold[reference] = (zenditSold[reference] ?? 0) + 1;
  }
  const breaches = orders.flatMap((order) => {
    if (order.mode === 'sandbox') {
      const isRight = order.sandbox_purchases === 1 || (order.issued === 0 && order.sandbox_purchases === 0);
      return isRight ? [] : [`${order.id} was bought ${order.sandbox_purchases} times`];
    }
    const sold = (order.provider === 'esim_access' ? access.purchases : zenditSold)[order.reference] ?? 0;
    if (!isSoldAsIssued(order, sold)) return [`${order.id}: sold ${sold}, issued ${order.issued}`];
    const days = access.days[order.reference];
    if (order.days === null || sold === 0 || days === order.days) return [];
    return [`${order.id}: sold ${days} days, ordered ${order.days}`];
  });
  if (zendit.duplicatePosts > 0) breaches.push(`${zendit.duplicatePosts} purchases were posted twice`);
  return { promise: 'each was sold once upstream, and no more than issued', breaches, count: orders.length };
}

function isSoldAsIssued(
  { issued, quantity, repeated, by_support: bySupport }: OrderRow,
  sold: number,
): boolean {
  if (bySupport) return sold <= Math.max(quantity, repeated);
  return repeated > 0 ? sold >= issued && sold <= repeated : sold === issued;
}

/** Runs `npm run reconcile`, which compares the ledger, wallets, orders, eSIMs and wholesalers. */
async function money(bed: ChaosBed): Promise<Check> {
  const { code, output } = await runCommand(['dist/src/main.reconcile.js', '--json'], bed.env);
  const breaches = code === 0 ? [] : [`npm run reconcile exited with ${code}: ${output.slice(-1_500)}`];
  return { promise: 'ledger, wallets, orders, eSIMs and wholesalers agree', breaches, count: 1 };
}

/** Events of which endpoint `w` gets a delivery (D58). The Live catalog may have changed before it was registered. */
const IS_OWED = `e.partner_id = w.partner_id AND e.mode = w.mode AND e.type <> 'catalog.changed'
  AND coalesce(w.event_types, '{order.issued,order.failed,esim.activated,esim.expired,esim.usage.threshold,
order.topup.completed,order.topup.failed}') && ARRAY[e.type, '*']`;
const IS_COUNTED = `d.kind = 'event' AND d.event_type <> 'catalog.changed'`;

async function books(bed: ChaosBed): Promise<Check> {
  const rows = await bed.postgres.rows<{ id: string; events: number; found: number; open: number }>(
    `SELECT w.id,
            (SELECT count(*)::int FROM events e WHERE ${IS_OWED}) AS events,
            count(d.id) FILTER (WHERE ${IS_COUNTED})::int AS found,
            count(d.id) FILTER (WHERE d.status IN ('pending', 'discarding', 'discarded'))::int AS open
     FROM webhook_endpoints w LEFT JOIN webhook_deliveries d ON d.endpoint_id = w.id GROUP BY w.id`,
  );
  const breaches = rows
    .filter(({ events, found, open }) => events !== found || open > 0)
    .map(
      ({ id, events, found, open }) =>
        `${id}: ${events} events, ${found} deliveries, ${open} open or given up`,
    );
  const pairs = rows.reduce((sum, { events }) => sum + events, 0);
  return { promise: 'every event was delivered or failed at every endpoint', breaches, count: pairs };
}

/**
 * Every delivery recorded as delivered must have arrived, and good receivers must have everything, correctly signed.
 */
async function deliveries(bed: ChaosBed): Promise<Check> {
  const rows = await bed.postgres.rows<{ endpoint_id: string; event_id: string; status: string }>(
    `SELECT endpoint_id, event_id, status FROM webhook_deliveries WHERE kind = 'event'`,
  );
  const receivers = new Map(bed.endpoints.map(({ id, receiver }) => [id, receiver]));
  const breaches = rows.flatMap(({ endpoint_id: endpoint, event_id: event, status }) => {
    const { behavior, events } = receivers.get(endpoint)!;
    if (status === 'delivered' && !events.has(event))
      return [`${event} never arrived at ${behavior} ${endpoint}`];
    return behavior === 'good' && status !== 'delivered' ? [`${event} is ${status} at good ${endpoint}`] : [];
  });
  const unsigned = bed.endpoints.reduce((sum, { receiver }) => sum + receiver.badSignatures, 0);
  if (unsigned > 0) breaches.push(`${unsigned} webhooks had a wrong signature`);
  const changed = bed.endpoints.reduce((sum, { receiver }) => sum + receiver.changed, 0);
  if (changed > 0) breaches.push(`${changed} repetitions had another delivery id or other bytes`);
  return { promise: 'every delivered event arrived, signed', breaches, count: rows.length };
}

async function feeds(bed: ChaosBed, readers: readonly FeedReader[]): Promise<Check> {
  const rows = await bed.postgres.rows<{ id: string; partner_id: string; mode: string }>(
    'SELECT id, partner_id, mode FROM events',
  );
  // After the query: work that did not settle may still record events.
  for (const reader of readers) await reader.finish();
  const breaches = readers.flatMap(({ partner, mode, seen, repeated }) => {
    const own = rows.filter((row) => row.partner_id === partner.id && row.mode === mode);
    const missed = own.filter(({ id }) => !seen.has(id)).map(({ id }) => `${id} was never in the feed`);
    return repeated > 0 ? [...missed, `${repeated} events appeared twice in a feed`] : missed;
  });
  return { promise: 'a reader that kept its cursor saw every event once', breaches, count: rows.length };
}

/**
 * Operators and partners must have been alerted about each second placement, each endpoint that gave up deliveries, and
 * each disabled endpoint.
 */
async function alerts(bed: ChaosBed): Promise<Check> {
  const rows = await bed.postgres.rows<{ what: string; expected: number; told: number }>(
    `SELECT format('%s of %s was placed again', p.operation, o.id) AS what, 1 AS expected,
            (SELECT count(*)::int FROM alerts a WHERE a.type = 'order.needs_review' AND a.subject_id = o.id
               AND a.details ->> 'placement_key' = p.placement_key) AS told
     FROM provider_placements p JOIN orders o ON o.provider_reference = p.provider_reference
     WHERE p.placements > 1
     UNION ALL
     SELECT format('%s gave up deliveries', w.id), 1,
            (SELECT least(count(*), 1)::int FROM alerts a
             WHERE a.type IN ('endpoint.blocked', 'endpoint.disabled') AND a.subject_id = w.id)
     FROM webhook_endpoints w
     WHERE EXISTS (SELECT FROM webhook_deliveries d
                   WHERE d.endpoint_id = w.id AND d.kind = 'event' AND d.status = 'failed')
     UNION ALL
     SELECT format('%s was disabled', l.subject_id), count(*)::int,
            (SELECT count(*)::int FROM alerts a WHERE a.type = 'endpoint.disabled' AND a.subject_id = l.subject_id)
     FROM audit_log l WHERE l.action = 'webhook_endpoint.disabled' GROUP BY l.subject_id`,
  );
  const breaches = rows
    .filter(({ expected, told }) => expected !== told)
    .map(({ what, expected, told }) => `${what}: ${told} alerts instead of ${expected}`);
  return { promise: 'every alert that should fire did, once', breaches, count: rows.length };
}

function answers(load: Load): Check {
  const breaches = [...load.wrong].map(([what, times]) => `${times} x ${what}`);
  return { promise: 'every response has a next step for the partner', breaches, count: load.begun };
}

/** Counts the attempts in flight, of one worker or of all. If the worker dies now, each may be sent again. */
export async function inFlight({ postgres }: ChaosBed, workerPid?: number): Promise<number> {
  const [row] = await postgres.rows<{ n: number }>(
    `SELECT count(*)::int AS n FROM webhook_deliveries d
     JOIN webhook_endpoint_leases l ON l.endpoint_id = d.endpoint_id AND l.fence = d.started_fence
     WHERE l.owner LIKE $1`,
    [workerPid === undefined ? '%' : `${workerPid}-%`],
  );
  return row!.n;
}

/** @returns endpoints whose delivery count differs from their event count, in one snapshot (D33) */
export async function unbalancedEndpoints({ postgres }: ChaosBed): Promise<readonly string[]> {
  const rows = await postgres.rows<{ id: string; events: number; found: number }>(
    `SELECT w.id, e.events, d.found FROM webhook_endpoints w
     CROSS JOIN LATERAL (SELECT count(*)::int AS events FROM events e WHERE ${IS_OWED}) e
     CROSS JOIN LATERAL (SELECT count(*)::int AS found FROM webhook_deliveries d
                         WHERE d.endpoint_id = w.id AND ${IS_COUNTED}) d
     WHERE e.events <> d.found`,
  );
  return rows.map(({ id, events, found }) => `${id}: ${events} events, ${found} deliveries`);
}

/** Checks the maximum cost of the faults. If commits or outcomes can be lost, the attempt log is not complete. */
export async function judgeFaults(
  { postgres, endpoints }: ChaosBed,
  faults: RandomFaults,
): Promise<readonly Check[]> {
  const logged = await postgres.rows<{
    id: string;
    endpoint_id: string;
    attempts: number;
    again: number;
    cut: number;
  }>(
    `SELECT d.id, d.endpoint_id, count(a.*)::int AS attempts,
            count(*) FILTER (WHERE a.outcome <> 'delivered')::int AS again,
            count(*) FILTER (WHERE a.outcome = 'interrupted')::int AS cut
     FROM webhook_deliveries d LEFT JOIN webhook_attempts a ON a.delivery_id = d.id GROUP BY d.id, d.endpoint_id`,
  );
  const receivers = new Map(endpoints.map(({ id, receiver }) => [id, receiver]));
  const repeated = logged.flatMap(({ id, endpoint_id: endpoint, attempts, again }) => {
    const requests = receivers.get(endpoint)!.deliveries.get(id) ?? 0;
    if (requests > attempts) return [`${id} was sent ${requests} times but has ${attempts} attempts`];
    const isGood = receivers.get(endpoint)!.behavior === 'good';
    return isGood && requests > 1 + again ? [`${id} was sent ${requests} times without a reason`] : [];
  });
  const cut = logged.reduce((sum, one) => sum + one.cut, 0);
  const limit = faults.counts.has('SIGSTOP worker') ? 2 * MAX_OPEN : MAX_OPEN;
  const crowded = endpoints
    .filter(({ receiver }) => receiver.mostOpen > limit)
    .map(({ id, receiver }) => `${id} had ${receiver.mostOpen} attempts at once`);
  return [
    {
      promise: 'deliveries add up to events at every moment',
      breaches: faults.unbalanced,
      count: faults.total,
    },
    ...(faults.losesOutcomes
      ? []
      : [
          { promise: 'every request is logged as an attempt', breaches: repeated, count: logged.length },
          {
            promise: 'only faults interrupted attempts',
            breaches:
              cut > faults.cut
                ? [`${cut} were interrupted, but only ${faults.cut} were in flight during faults`]
                : [],
            count: cut,
          },
        ]),
    {
      promise: `at most ${limit} attempts to an endpoint at once`,
      breaches: crowded,
      count: endpoints.length,
    },
  ];
}

async function readOrders(bed: ChaosBed): Promise<readonly OrderRow[]> {
  return bed.postgres.rows<OrderRow>(
    `WITH told AS (
       SELECT partner_id, mode, body::jsonb -> 'data' ->> 'order_id' AS order_id, count(*)::int AS outcomes,
              count(*) FILTER (WHERE type = 'order.failed')::int AS failures
       FROM events WHERE type IN ('order.issued', 'order.failed') GROUP BY 1, 2, 3),
     placed AS (
       SELECT provider_reference, CASE WHEN max(placements) > 1 THEN sum(placements) ELSE 0 END::int AS repeated
       FROM provider_placements GROUP BY 1)
     SELECT o.id, o.mode, o.provider, provider_reference AS reference, o.status, o.quantity, o.days, o.package_id,
            o.quantity_issued AS issued, o.quantity_failed AS failed,
            (SELECT count(DISTINCT e.provider_esim_id)::int FROM esims e WHERE e.order_id = o.id) AS esims,
            (SELECT count(*)::int FROM sandbox_upstream_orders u WHERE u.reference = o.provider_reference)
              AS sandbox_purchases,
            coalesce(told.outcomes, 0) AS outcomes,
            coalesce(told.failures, 0) AS failures,
            coalesce(placed.repeated, 0) AS repeated,
            EXISTS (SELECT 1 FROM audit_log a WHERE a.subject_id = o.id
                    AND a.details ->> 'action' LIKE 'mark_%') AS by_support
     FROM orders o
     LEFT JOIN told ON told.partner_id = o.partner_id AND told.mode = o.mode AND told.order_id = o.id
     LEFT JOIN placed USING (provider_reference)
     ORDER BY o.id`,
  );
}
