import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { FAST, recordEvents, registerEndpoint } from './support.js';

const PER_SECOND = 20;
const RUNNERS = 4;
const EVENTS = 160;
/** Six seconds' worth after the first second's. */
const MADE = 140;
const ENV = { ...FAST, WEBHOOK_REPLAY_PER_SECOND: String(PER_SECOND) };

let office: TestService;
let receiver: TestReceiver;
const workers: TestService[] = [];

beforeEach(async () => {
  office = await startTestService({ role: 'admin', env: ENV });
  receiver = await startReceiver();
  // One after the other, so that their steps are not at the same moment.
  for (let i = 0; i < RUNNERS; i++) {
    workers.push(await startTestService({ role: 'worker', env: ENV, database: office.database }));
  }
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await receiver.close();
  await office.stop();
});

it(`a replay makes ${PER_SECOND} deliveries a second, and not that many for each of ${RUNNERS} workers`, async () => {
  const partner = await office.createPartner();
  const endpoint = await registerEndpoint(office, partner.id, { url: receiver.url });
  await recordEvents(
    office,
    Array.from({ length: EVENTS }, () => ({ partnerId: partner.id })),
  );
  const undelivered = `SELECT 1 FROM webhook_deliveries WHERE endpoint_id = $1 AND status <> 'delivered' LIMIT 1`;
  await eventually(
    'all delivered',
    async () => (await office.database.pool.query(undelivered, [endpoint.id])).rowCount === 0,
  );
  const startedAt = performance.now();
  const started = await office.admin.post(`${endpoint.path}/replay`, { since: '2026-01-01T00:00:00Z' });
  const path = `/internal/v1/replays/${started.body.data.id}`;
  const samples: Sample[] = [];
  const { created, elapsedMs } = await eventually(`${MADE} are made`, async () => {
    const { created } = (await office.admin.get(path)).body.data as { created: number };
    const sample = { created, elapsedMs: performance.now() - startedAt };
    samples.push(sample);
    return created >= MADE && sample;
  });
  console.log(`${created} deliveries in ${elapsedMs.toFixed(0)} ms`);
  // The first second's worth comes at once. Four times the pace would be there in 1.8 s.
  expect(elapsedMs).toBeGreaterThan(((created - 2 * PER_SECOND) / PER_SECOND) * 1_000);
  // And it is kept where the machine lets it: a quarter of the pace would take this long for a second's worth.
  const afterTheFirst = samples.filter((sample) => sample.created >= PER_SECOND);
  expect(quickestMs(afterTheFirst, PER_SECOND)).toBeLessThan(3_000);
});

interface Sample {
  readonly created: number;
  readonly elapsedMs: number;
}

/** The shortest time in which that many were made: the machine may be busy with something else in between. */
function quickestMs(samples: readonly Sample[], deliveries: number): number {
  const times = samples.flatMap((begin) => {
    const end = samples.find(({ created }) => created - begin.created >= deliveries);
    return end === undefined ? [] : [end.elapsedMs - begin.elapsedMs];
  });
  return Math.min(...times);
}
