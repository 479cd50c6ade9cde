import { idFloor } from '../../src/common/ids.js';
import { dayOf, partitionName } from '../../src/infra/partition-days.js';
import type { Section } from '../report/report.js';
import { WebhookBed } from './bed.js';
import { alternate, comparisonRows } from './comparison.js';
import { LATENCY_ENDPOINTS, LATENCY_NOTE } from './latency.js';
import { indexes, type WebhookPart } from './part.js';
import { type Phase, runPhase } from './phase.js';
import { Receiver } from './receiver.js';

const RATE = 200;
const DAYS = 20;

/** Does what was delivered long ago slow what is due now? */
export const history: WebhookPart = async (server, options, cleanups) => {
  const old = options.quick ? 100_000 : 1_000_000;
  const receiver = cleanups.stopping(await Receiver.start(LATENCY_ENDPOINTS));
  const endpointsPerPartner = new Array<number>(LATENCY_ENDPOINTS).fill(1);
  const plan = { server, receiver, endpointsPerPartner };
  const empty = await WebhookBed.prepare({ ...plan, database: 'bench_empty' }, cleanups);
  const full = await WebhookBed.prepare({ ...plan, database: 'bench_history' }, cleanups);
  const startedAtMs = performance.now();
  await insertHistory(full, old);
  process.stderr.write(`history: inserted in ${Math.round((performance.now() - startedAtMs) / 1_000)} s\n`);
  const measure = (bed: WebhookBed): Promise<Phase> =>
    runPhase(bed, {
      partners: indexes(LATENCY_ENDPOINTS),
      perSecond: RATE,
      warmupMs: options.warmupMs,
      durationMs: options.roundMs * 2,
      untilIdle: true,
    });
  await measure(empty);
  await empty.settle();
  await full.settle();
  const pairs = await alternate(options.rounds, 'history', {
    before: () => measure(empty),
    after: () => measure(full),
  });
  return {
    title: `History: ${old.toLocaleString('en')} old deliveries in the tables, ${RATE} events/s, ${LATENCY_ENDPOINTS} endpoints`,
    rows: comparisonRows(pairs, { before: 'empty tables', after: 'with history' }),
    notes: [
      LATENCY_NOTE,
      'Two databases of one server with a worker each; old events, deliveries and attempts, vacuumed and analysed.',
    ],
  } satisfies Section;
};

/** Old events, one delivery and one attempt each, spread over the endpoints and the last days. */
async function insertHistory(bed: WebhookBed, count: number): Promise<void> {
  const perDay = Math.floor(count / DAYS);
  for (let age = DAYS; age >= 1; age--)
    await insertDay(bed, dayOf(new Date(), -age), (DAYS - age) * perDay, perDay);
  await bed.query(
    `SELECT setval('event_positions', ${count});
     INSERT INTO event_feed_days (partition_name, mode, first_position, last_position)
     SELECT c.relname, e.mode, min(e.position), max(e.position) FROM events e JOIN pg_class c ON c.oid = e.tableoid
     WHERE e.position IS NOT NULL GROUP BY 1, 2 ON CONFLICT (partition_name) DO NOTHING`,
  );
}

async function insertDay(bed: WebhookBed, day: Date, first: number, count: number): Promise<void> {
  const list = (ids: readonly string[]): string => `(ARRAY['${ids.join("','")}'])[n % ${ids.length} + 1]`;
  const at = `'${day.toISOString()}'::timestamptz + n * interval '86000 seconds' / ${count}`;
  const idOf = (prefix: 'evt' | 'dlv'): string =>
    `'${idFloor(prefix, new Date(day.getTime() + 1))}' || lpad(n::text, 16, '0')`;
  const numbers = `generate_series(1, ${count}) AS n`;
  const bounds = (from: string, to: string): string => `FOR VALUES FROM ('${from}') TO ('${to}')`;
  const next = dayOf(day, 1);
  const times = bounds(day.toISOString(), next.toISOString());
  const ids = bounds(idFloor('evt', day), idFloor('evt', next));
  const tables = [
    ['events_sandbox', ids],
    ['webhook_deliveries_sandbox', times],
    ['webhook_attempts', times],
  ] as const;
  for (const [table, range] of tables)
    await bed.query(`CREATE TABLE IF NOT EXISTS ${partitionName(table, day)} PARTITION OF ${table} ${range}`);
  await bed.query(
    `INSERT INTO events (id, partner_id, mode, type, body, position, created_at)
     SELECT ${idOf('evt')}, ${list(bed.partnerIds)}, 'sandbox', 'esim.activated',
            json_build_object('id', ${idOf('evt')}, 'type', 'esim.activated', 'data', repeat('x', 150)), ${first} + n, ${at}
     FROM ${numbers};
     INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, attempt_count,
                                     counted_attempts, fence, created_at, delivered_at, ended_at)
     SELECT ${idOf('dlv')}, ${list(bed.endpointIds)}, ${list(bed.partnerIds)}, 'sandbox', ${idOf('evt')}, 'esim.activated',
            'event', 'delivered', 1, 1, 1, ${at}, ${at}, ${at}
     FROM ${numbers};
     INSERT INTO webhook_attempts (delivery_id, endpoint_id, partner_id, number, started_at, outcome, status_code,
                                   latency_ms, recorded_at)
     SELECT ${idOf('dlv')}, ${list(bed.endpointIds)}, ${list(bed.partnerIds)}, 1, ${at}, 'delivered', 200, 40, ${at}
     FROM ${numbers}`,
  );
}
