/**
 * `npm run bench -- soak`: API, admin and worker at half of the maximum sustained rate, for `--minutes`, with the
 * shortest retention and SQL that simulates the passing of days (D44). Samples memory, sizes, queues and lock waits
 * each minute.
 * Baseline: the first half of the same run. The second half must not use more. No lock wait may exceed 100 ms.
 * Read the KEPT and BROKEN lines. The verdict on sizes needs 30 minutes. Ctrl-C ends the run and prints the table so
 * far.
 */
import type { BenchOptions } from './main.js';
import { Child, type Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import { startReceiver } from './shared/http.js';
import { createEndpoint, createPartners } from './shared/partners.js';
import { format, say, type Section } from './shared/report.js';
import { startRoles } from './shared/service-process.js';
import { AGE_MS, Aging } from './soak-aging.js';
import type { CallerApi, CallReport } from './soak-caller.child.js';
import {
  FIRST_PERIOD_MINUTES,
  LOCK_WAIT_SETTINGS,
  type LockWait,
  readLockWaits,
  soakTable,
  takeSample,
  type TimedSample,
  verdicts,
  WARM_UP_MINUTES,
} from './soak-samples.js';

const DATABASE = 'bench_soak';
const PARTNERS = 30;
const MINUTE_MS = 60_000;
const CALIBRATION_MS = 20_000;
const CALIBRATION_CALLERS = 32;
/** The shortest retention that the settings allow. */
const ENV = {
  CALL_LOG_RETENTION_DAYS: '1',
  EVENT_RETENTION_DAYS: '1',
  SANDBOX_EVENT_RETENTION_DAYS: '1',
  WEBHOOK_ATTEMPT_RETENTION_DAYS: '1',
  SANDBOX_ORDER_RETENTION_DAYS: '1',
  ALERT_RETENTION_DAYS: '1',
  LISTS_PER_PARTNER: '100',
};

type Bed = Awaited<ReturnType<typeof openBed>>;

export async function benchSoak(
  { minutes, quick }: BenchOptions,
  cleanups: Cleanups,
): Promise<readonly Section[]> {
  const bed = await openBed(cleanups);
  const limit = await calibrate(bed, quick ? CALIBRATION_MS / 4 : CALIBRATION_MS);
  const rate = Math.max(1, Math.floor(limit / 2));
  say(`soak: the maximum is ${format(limit)} calls/s; running at ${rate} calls/s for ${minutes} min`);
  const aging = cleanups.stopping(await Aging.open(bed.server.url(DATABASE)));
  const samples: TimedSample[] = [];
  const waits: LockWait[] = [];
  const errors: Record<string, number> = {};
  let aged = 0;
  let [, logLine] = await readLockWaits(bed.server.statementLog, 0);
  const stopping = abortOnSignal();
  const runMinute = async (minute: number): Promise<void> => {
    // The worker may drop the target day while rows move to it. They move in the next minute instead.
    const makeOlder = aging.run().then(
      (rows) => void (aged += rows),
      (error: unknown) => say(`soak: aging rows failed: ${(error as Error).message}`),
    );
    const calls = await bed.caller.call('pace', bed.settings, rate, MINUTE_MS);
    await makeOlder;
    const [newWaits, line] = await readLockWaits(bed.server.statementLog, logLine);
    logLine = line;
    waits.push(...newWaits);
    for (const [name, count] of Object.entries(calls.errors)) errors[name] = (errors[name] ?? 0) + count;
    const sample = {
      ...(await takeSample(bed.server, DATABASE, bed.processes)),
      'longest lock wait (ms)': Math.max(0, ...newWaits.map(({ waitedMs }) => waitedMs)),
      'callers: p95 (ms)': calls.p95Ms,
      'callers: responses (/s)': calls.calls / calls.seconds,
    };
    samples.push({ minute, sample });
    sayMinute(minute, sample, calls);
  };
  for (let minute = 1; minute <= minutes && !stopping.aborted; minute++) {
    const aborted = new Promise<void>((resolve) => stopping.addEventListener('abort', () => resolve()));
    const running = runMinute(minute);
    // A signal from the terminal also stops the service's processes. Ignore the failures that follow.
    running.catch(() => undefined);
    await Promise.race([running, aborted]);
  }
  return [
    {
      title: `Soak: ${samples.length} of ${minutes} minutes at ${rate} calls/s, half of ${format(limit)}`,
      rows: [],
      table: soakTable(samples),
      notes: [
        ...verdicts(samples, waits, errors),
        `Columns start after ${WARM_UP_MINUTES} min. The first retention period ends after ${FIRST_PERIOD_MINUTES} min (purges run every 10).`,
        `Retention is one day, the minimum. Each minute, SQL ages rows older than ${AGE_MS / MINUTE_MS} min by 3 days (${aged.toLocaleString('en')} rows in total),`,
        'which moves them to that day’s partition. The bloat that this causes in today’s partition is an artifact of the bench.',
        'Of 100 calls, 10 place Sandbox orders, 70 read, 18 poll the feed and 2 come from the portal. One process per role.',
      ],
    },
  ];
}

function sayMinute(minute: number, sample: Readonly<Record<string, number>>, calls: CallReport): void {
  const names = ['api: RSS (MB)', 'worker: RSS (MB)', 'database (MB)', 'queue: open orders'];
  const shown = [...names, 'longest lock wait (ms)'].map((name) => `${name} ${format(sample[name] ?? NaN)}`);
  const errors = JSON.stringify(calls.errors);
  say(`soak ${minute} min: p95 ${format(calls.p95Ms)} ms, ${shown.join(', ')}, errors ${errors}`);
}

/** The first Ctrl-C ends the soak and reports the samples so far. The second one exits at once. */
function abortOnSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.removeAllListeners(signal);
    process.once(signal, () => {
      say('soak: stopping and reporting the samples so far');
      stopping.abort();
      process.once(signal, () => process.exit(1));
    });
  }
  return stopping.signal;
}

/**
 * Measures the calls per second that the service sustains: the callers' calls divided by the time until the worker is
 * idle again.
 */
async function calibrate({ server, caller, settings }: Bed, durationMs: number): Promise<number> {
  const idle = async (): Promise<void> => {
    await server.drain(DATABASE, 'orders');
    await server.drain(DATABASE, 'deliveries');
  };
  await caller.call('press', settings, CALIBRATION_CALLERS, durationMs / 4);
  await idle();
  const startedAtMs = performance.now();
  const { calls, errors } = await caller.call('press', settings, CALIBRATION_CALLERS, durationMs);
  await idle();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  say(
    `soak: ${calls} calls, the worker was idle after ${seconds.toFixed(1)} s, errors ${JSON.stringify(errors)}`,
  );
  return calls / seconds;
}

/** Starts one process per role, creates partners with one endpoint each, and starts a receiver and the callers. */
async function openBed(cleanups: Cleanups) {
  const server = cleanups.stopping(await DatabaseServer.start(LOCK_WAIT_SETTINGS));
  const databaseUrl = await server.createDatabase(DATABASE);
  const partners = await createPartners(server, DATABASE, PARTNERS);
  const processes = await startRoles(['api', 'admin', 'worker'], { databaseUrl, env: ENV }, cleanups);
  const { api, admin } = processes;
  const receiver = await startReceiver(cleanups);
  for (const { partnerId } of partners) await createEndpoint(admin, partnerId, receiver);
  const caller = cleanups.stopping(
    Child.start<CallerApi>(new URL('./soak-caller.child.js', import.meta.url)),
  );
  const { adminUrl, adminToken } = admin;
  const callers = partners.map(({ partnerId, key }) => ({ partnerId, key }));
  return {
    server,
    processes,
    caller,
    settings: { apiUrl: api.apiUrl, adminUrl, adminToken, partners: callers },
  };
}
