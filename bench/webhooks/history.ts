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
  const list = (ids: readonly string[]): string => `(ARRAY['${ids.join("','")}'])[n % ${ids.length} + 1]`;
  const at = `now() - interval '1 day' - n * interval '${DAYS * 86_400} seconds' / ${count}`;
  const digits = `lpad(n::text, 26, '0')`;
  const numbers = `generate_series(1, ${count}) AS n`;
  // Foreign keys are not checked: the rows are made to fit.
  await bed.query(
    `SET session_replication_role = replica;
     INSERT INTO events (id, partner_id, mode, type, body, position, created_at)
     SELECT 'evt_' || ${digits}, ${list(bed.partnerIds)}, 'sandbox', 'esim.activated',
            json_build_object('id', 'evt_' || ${digits}, 'type', 'esim.activated', 'data', repeat('x', 150)), n, ${at}
     FROM ${numbers};
     SELECT setval('event_positions', ${count});
     INSERT INTO webhook_deliveries (id, endpoint_id, event_id, event_type, kind, status, attempt_count,
                                     counted_attempts, fence, created_at, delivered_at)
     SELECT 'dlv_' || ${digits}, ${list(bed.endpointIds)}, 'evt_' || ${digits}, 'esim.activated', 'event',
            'delivered', 1, 1, 1, ${at}, ${at}
     FROM ${numbers};
     INSERT INTO webhook_attempts (delivery_id, endpoint_id, number, started_at, outcome, status_code, latency_ms)
     SELECT 'dlv_' || ${digits}, ${list(bed.endpointIds)}, 1, ${at}, 'delivered', 200, 40 FROM ${numbers}`,
  );
}
