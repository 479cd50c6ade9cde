import { setTimeout as sleep } from 'node:timers/promises';
import { ChaosBed } from './bed.js';
import { calmProviders, type FaultGroup, RandomFaults } from './faults.js';
import { FeedReader, Load } from './load.js';
import { Random } from './random.js';
import { judgeRestarts, RollingRestarts } from './rolling.js';
import { type Check, judge, judgeFaults } from './verdict.js';

const PROGRESS_MS = 5_000;
const SETTLE_LIMIT_MS = 480_000;
/** Support steps in after this time. Orders without an alert end on their own. */
const SUPPORT_AFTER_MS = 15_000;
const SUPPORT_AT_ONCE = 10;
const OPEN = `status IN ('pending', 'processing', 'canceling')`;

export interface StormOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Orders per second. */
  readonly rate: number;
  /** Caps the orders if faults on a busy machine take longer than `seconds`. */
  readonly maxOrders?: number;
  /** Groups of faults to draw from, or `rolling` to replace each process as a release does. */
  readonly faults: readonly FaultGroup[] | 'rolling';
  /** Uses Redis for queues and rate limits. */
  readonly redis: boolean;
  /** The built checkout that the roles start with; defaults to this one. */
  readonly from?: string;
  /** Settings of the roles that override the bed's. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface StormReport {
  /** Lines that describe the run. */
  readonly summary: readonly string[];
  /** Every promise with its breaches. */
  readonly verdict: readonly Check[];
}

/**
 * Runs every role of the service in its own processes. Partners place orders while the faults happen. Afterwards it
 * waits until no work is left and checks every promise.
 * @param opened receives the bed, so that an interruption can close it
 * @throws Error when the bed does not start or a process does not restart
 */
export async function runStorm(
  options: StormOptions,
  say: (line: string) => void,
  opened: (bed: ChaosBed) => void = () => undefined,
): Promise<StormReport> {
  const { seed, redis, faults, from, env } = options;
  const isRolling = faults === 'rolling';
  const bed = await ChaosBed.open({
    redis,
    env: env ?? {},
    ...(isRolling
      ? { troubles: false, portal: true, silence: false, ownDisk: false }
      : {
          troubles: true,
          portal: false,
          silence: faults.includes('silence'),
          ownDisk: faults.includes('crashes'),
        }),
    ...(from === undefined ? {} : { root: from }),
  });
  opened(bed);
  try {
    // Use a separate random sequence, so that the storm does not depend on how many purchases the machine starts.
    const load = new Load(bed, new Random(seed + 1));
    const restarts = isRolling ? new RollingRestarts(bed) : null;
    const drawn = isRolling ? null : new RandomFaults(bed, new Random(seed), faults);
    const disturber = restarts ?? drawn!;
    const readers = bed.partners.flatMap((partner) =>
      (['sandbox', 'live'] as const).map((mode) => new FeedReader(bed, partner, mode)),
    );
    await rage(bed, { load, disturber, readers }, options, say);
    const { bySupport, seconds, stuck } = await settle(bed, say);
    const missedPolls = readers.reduce((sum, { failed }) => sum + failed, 0);
    const verdict = [
      { promise: 'nothing is open any more', breaches: stuck, count: 1 },
      ...(await judge(bed, load, readers)),
      ...(drawn ? await judgeFaults(bed, drawn) : []),
      ...(restarts ? judgeRestarts(bed, load, restarts, missedPolls) : []),
    ];
    const { fullSeen } = bed.postgres;
    const summary = [
      `${disturber.describe()}${fullSeen > 0 ? `; a statement failed ${fullSeen} times because the disk was full` : ''}`,
      `${load.begun} purchases begun, ${load.accepted.size} accepted, ${load.refused} refused, ${load.unanswered} without ` +
        `a response within five minutes, ${load.repeats} calls repeated; ${received(bed)} webhooks received; ` +
        `settled after ${seconds.toFixed(0)} s, ${bySupport} orders by support`,
    ];
    return { summary, verdict };
  } finally {
    await bed.close();
  }
}

interface Actors {
  readonly load: Load;
  readonly disturber: RandomFaults | RollingRestarts;
  readonly readers: readonly FeedReader[];
}

/** Runs the disturbances together with the load and the feed readers. */
async function rage(
  bed: ChaosBed,
  { load, disturber, readers }: Actors,
  { seconds, rate, maxOrders = Infinity }: StormOptions,
  say: (line: string) => void,
): Promise<void> {
  const over = AbortSignal.timeout(seconds * 1_000);
  const ended = new AbortController();
  const startedAtMs = performance.now();
  const progress = setInterval(() => {
    say(
      `${Math.round((performance.now() - startedAtMs) / 1_000)} s: ${load.begun} purchases begun, ` +
        `${load.accepted.size} accepted, ${load.waiting} in progress, ${load.repeats} repeated calls, ` +
        `${disturber.total} disturbances, ${received(bed)} webhooks`,
    );
  }, PROGRESS_MS);
  try {
    const partners = Promise.all([
      load.run(rate, maxOrders, ended.signal),
      ...readers.map((reader) => reader.run(ended.signal)),
    ]);
    partners.catch(() => ended.abort());
    await disturber.run(over);
    ended.abort();
    await partners;
  } finally {
    clearInterval(progress);
    ended.abort();
  }
}

function received({ endpoints }: ChaosBed): number {
  return endpoints.reduce((sum, { receiver }) => sum + receiver.received, 0);
}

/**
 * Ends all faults and waits until no work is left. Orders that the service raised an alert about (placed twice, or
 * late) are ended as support would do in production.
 */
async function settle(
  bed: ChaosBed,
  say: (line: string) => void,
): Promise<{ bySupport: number; seconds: number; stuck: readonly string[] }> {
  const startedAtMs = performance.now();
  for (const { receiver } of bed.endpoints) receiver.calmDown();
  await calmProviders(bed.simulators);
  const bySupport = new Set<string>();
  let stuck: readonly string[] = [];
  while (performance.now() - startedAtMs < SETTLE_LIMIT_MS) {
    await enableEndpoints(bed);
    if (performance.now() - startedAtMs > SUPPORT_AFTER_MS) await endBySupport(bed, bySupport);
    stuck = await openWork(bed);
    if (stuck.length === 0) break;
    say(`settling: ${stuck.join(', ')}`);
    await sleep(1_000);
  }
  return { bySupport: bySupport.size, seconds: (performance.now() - startedAtMs) / 1_000, stuck };
}

/** Enables endpoints that the service disabled during the storm, so that they receive their held deliveries. */
async function enableEndpoints(bed: ChaosBed): Promise<void> {
  const disabled = await bed.postgres.rows<{ id: string }>(
    'SELECT id FROM webhook_endpoints WHERE NOT enabled',
  );
  for (const { id, path } of bed.endpoints)
    if (disabled.some((one) => one.id === id)) await bed.callAdmin('POST', `${path}/enable`, {});
}

async function endBySupport(bed: ChaosBed, ended: Set<string>): Promise<void> {
  const alerted = await bed.postgres.rows<{ id: string }>(
    `SELECT o.id FROM orders o WHERE ${OPEN}
       AND EXISTS (SELECT 1 FROM alerts a WHERE a.subject_id = o.id AND a.type = 'order.needs_review')`,
  );
  for (let from = 0; from < alerted.length; from += SUPPORT_AT_ONCE)
    await Promise.all(
      alerted.slice(from, from + SUPPORT_AT_ONCE).map(async ({ id }) => {
        if (await endOrder(bed, id)) ended.add(id);
      }),
    );
}

/**
 * Ends one order as support does. Tries the wholesaler's state first, because `mark_failed` is refused for a sold
 * order.
 * @returns whether the order has ended
 */
async function endOrder(bed: ChaosBed, id: string): Promise<boolean> {
  for (const action of ['mark_issued', 'mark_failed']) {
    const body = { action, note: 'the storm is over' };
    const { status } = await bed.tryAdmin('POST', `/internal/v1/orders/${id}/reconcile`, body);
    if (status === 200) return true;
  }
  return false;
}

async function openWork(bed: ChaosBed): Promise<readonly string[]> {
  const rows = await bed.postgres.rows<{ what: string; count: number }>(
    `SELECT 'orders' AS what, count(*)::int AS count FROM orders WHERE ${OPEN}
     UNION ALL SELECT 'deliveries', count(*)::int FROM webhook_deliveries WHERE status IN ('pending', 'discarding')
     UNION ALL SELECT 'events without a position', count(*)::int FROM events WHERE position IS NULL`,
  );
  return rows.filter(({ count }) => count > 0).map(({ what, count }) => `${count} ${what}`);
}
