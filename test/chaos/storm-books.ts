import type { TestDatabase } from '../harness/index.js';

/** One endpoint's side of the equation of D33, read in one snapshot. */
export interface EndpointBooks {
  readonly id: string;
  readonly status: 'enabled' | 'disabled';
  /** Events of its partner, mode and types. */
  readonly events: number;
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly held: number;
  readonly discarded: number;
}

/** The equation, for every endpoint, at one moment. */
export async function readEquation({ pool }: TestDatabase): Promise<readonly EndpointBooks[]> {
  const { rows } = await pool.query<EndpointBooks>(
    `WITH owed AS (
       SELECT w.id, count(*)::int AS events FROM webhook_endpoints w
       JOIN events e ON e.partner_id = w.partner_id AND e.mode = w.mode
         AND (w.event_types IS NULL OR e.type = ANY (w.event_types))
       GROUP BY w.id
     ), first_deliveries AS (
       SELECT d.endpoint_id AS id, count(*) FILTER (WHERE d.status = 'delivered')::int AS delivered,
              count(*) FILTER (WHERE d.status = 'failed')::int AS failed,
              count(*) FILTER (WHERE d.status = 'pending')::int AS pending,
              count(*) FILTER (WHERE d.status = 'discarded')::int AS discarded
       FROM webhook_deliveries d WHERE d.kind = 'event' GROUP BY d.endpoint_id
     )
     SELECT w.id, CASE WHEN w.enabled THEN 'enabled' ELSE 'disabled' END AS status,
            coalesce(o.events, 0) AS events, coalesce(f.delivered, 0) AS delivered, coalesce(f.failed, 0) AS failed,
            CASE WHEN w.enabled THEN coalesce(f.pending, 0) ELSE 0 END AS pending,
            CASE WHEN w.enabled THEN 0 ELSE coalesce(f.pending, 0) END AS held,
            coalesce(f.discarded, 0) AS discarded
     FROM webhook_endpoints w LEFT JOIN owed o ON o.id = w.id LEFT JOIN first_deliveries f ON f.id = w.id
     ORDER BY w.id`,
  );
  return rows;
}

export function isBalanced(books: EndpointBooks): boolean {
  const { events, delivered, failed, pending, held, discarded } = books;
  return events === delivered + failed + pending + held + discarded;
}

/** Attempts under way, of one worker or of all: what a death at this moment may make arrive twice. */
export async function inFlight({ pool }: TestDatabase, workerPid?: number): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM webhook_deliveries d
     JOIN webhook_endpoint_leases l ON l.endpoint_id = d.endpoint_id AND l.fence = d.started_fence
     WHERE l.owner LIKE $1`,
    [workerPid === undefined ? '%' : `${workerPid}-%`],
  );
  return rows[0]!.n;
}

export interface LoggedDelivery {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly interrupted: number;
  readonly failed: number;
}

/** Every delivery with what the attempt log says of it. */
export async function readDeliveries({ pool }: TestDatabase): Promise<readonly LoggedDelivery[]> {
  const { rows } = await pool.query<LoggedDelivery>(
    `SELECT d.id, d.endpoint_id, d.event_id, d.status, count(a.*)::int AS attempts,
            count(*) FILTER (WHERE a.outcome = 'interrupted')::int AS interrupted,
            count(*) FILTER (WHERE a.outcome = 'failed')::int AS failed
     FROM webhook_deliveries d LEFT JOIN webhook_attempts a ON a.delivery_id = d.id
     GROUP BY d.id, d.endpoint_id, d.event_id, d.status`,
  );
  return rows;
}
