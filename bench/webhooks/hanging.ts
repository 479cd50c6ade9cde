import { setTimeout as sleep } from 'node:timers/promises';
import type { Section } from '../report/report.js';
import { WebhookBed } from './bed.js';
import { alternate, comparisonRows } from './comparison.js';
import { LATENCY_NOTE } from './latency.js';
import { indexes, type WebhookPart } from './part.js';
import { type Phase, runPhase } from './phase.js';
import { Receiver } from './receiver.js';

const RATE = 200;
/** Of a partner each. With a full window of 16 they would hold more than the 2,048 slots of the worker. */
const HANGING = indexes(140);
const ENDPOINTS = 200;
/** D42. */
const MOST_RATIO = 2;
/** More than an endpoint's slots, so that each of them is full of hanging attempts from the start. */
const WAITING_PER_ENDPOINT = 40;
const FILL_MS = 1_000;

/** Do endpoints that hang, and could fill the worker, slow the others (D34, D42)? */
export const hanging: WebhookPart = async (server, options, cleanups) => {
  const receiver = cleanups.stopping(await Receiver.start(ENDPOINTS));
  const endpointsPerPartner = new Array<number>(ENDPOINTS).fill(1);
  const bed = await WebhookBed.prepare(
    { server, database: 'bench_hanging', receiver, endpointsPerPartner },
    cleanups,
  );
  const measure = (untilIdle: boolean): Promise<Phase> =>
    runPhase(bed, {
      partners: indexes(ENDPOINTS),
      unwatched: HANGING,
      perSecond: RATE,
      warmupMs: options.warmupMs,
      durationMs: options.roundMs * 2,
      untilIdle,
    });
  await measure(true);
  await bed.settle();
  const pairs = await alternate(options.rounds, 'hanging', {
    before: () => measure(true),
    after: async () => {
      await receiver.hang(HANGING);
      const partnerIds = HANGING.map((index) => bed.partnerIds[index]!);
      await bed.load.bulk({ partnerIds, count: HANGING.length * WAITING_PER_ENDPOINT });
      await sleep(FILL_MS);
      const phase = await measure(false);
      await receiver.hang([]);
      await bed.untilIdle();
      return phase;
    },
  });
  return {
    title: `Hanging: ${HANGING.length} of ${ENDPOINTS} endpoints do not answer, ${RATE} events/s over all`,
    rows: comparisonRows(pairs, { before: 'all answer', after: `${HANGING.length} hang` }, MOST_RATIO),
    notes: [
      `Latency of the other ${ENDPOINTS - HANGING.length}. ${LATENCY_NOTE}`,
      `Each endpoint that hangs has ${WAITING_PER_ENDPOINT} deliveries waiting first: its slots are full all the time.`,
    ],
  } satisfies Section;
};
