import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { HoldingReceiver } from './holding-receiver.js';
import { recordEvents, registerEndpoint } from './support.js';

const CAP = 4;
/** What waits goes so soon after a slot is free, on a busy machine; a sweep comes after a minute. */
const SOON_MS = 8_000;
const ENV = {
  WEBHOOK_CONCURRENCY_PER_ENDPOINT: String(CAP),
  WEBHOOK_TIMEOUT_MS: '60000',
  LEASE_MS: '60000',
  // Longer than the test: a sweep would hide that nobody claims.
  SWEEP_INTERVAL_MS: '60000',
};

let office: TestService;
let partner: TestPartner;
let holding: HoldingReceiver;
let answering: RoleChild;
let hanging: RoleChild;

beforeEach(async () => {
  office = await startTestService({ role: 'admin' });
  partner = await office.createPartner();
  holding = await HoldingReceiver.start();
  await registerEndpoint(office, partner.id, { url: holding.url });
  const start = () => RoleChild.start({ role: 'worker', database: office.database, env: ENV });
  [answering, hanging] = await Promise.all([start(), start()]);
  // A worker is ready before it listens: it would hear of nothing until its sweep.
  await eventually('both listen', async () => {
    const { rows } = await office.database.pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN partner_esim_work'`,
    );
    return rows.length === 2;
  });
});
afterEach(async () => {
  await Promise.all([answering.kill(), hanging.kill()]);
  await holding.close();
  await office.stop();
});

/** Records events while only `worker` runs, so that it claims what the window leaves. */
async function recordFor(worker: RoleChild, count: number): Promise<void> {
  const other = worker === answering ? hanging : answering;
  worker.thaw();
  other.freeze();
  const before = holding.received.length;
  await recordEvents(
    office,
    Array.from({ length: count }, () => ({ partnerId: partner.id })),
  );
  const claimed = Math.min(count, CAP - holding.open.length);
  await eventually('they are under way', () => holding.received.length === before + claimed);
}

/** Answers the oldest `count` requests; the milliseconds until `next` others have come. */
async function untilNext(count: number, next: number): Promise<number> {
  answering.thaw();
  hanging.thaw();
  const before = holding.received.length;
  const startedAt = performance.now();
  for (const response of holding.open.splice(0, count)) response.writeHead(200).end();
  await eventually('what waits goes out', () => holding.received.length === before + next);
  return performance.now() - startedAt;
}

describe('what waits for a slot, with two workers on one endpoint', () => {
  it('goes when the other worker has a free one, after a claim that found none', async () => {
    await recordFor(answering, CAP - 1);
    await recordFor(hanging, 1);
    await recordFor(hanging, 2);
    expect(await untilNext(CAP - 1, 2)).toBeLessThan(SOON_MS);
  });

  it('goes when the other worker has a free one, after a claim that took the last', async () => {
    await recordFor(answering, 2);
    await recordFor(hanging, 4);
    expect(await untilNext(2, 2)).toBeLessThan(SOON_MS);
  });
});
