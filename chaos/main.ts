import { randomInt } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ChaosBed } from './bed.js';
import { FeedReader } from './feed-reader.js';
import { Load } from './load.js';
import { ROOT } from './processes.js';
import { Random } from './random.js';
import { judgeRestarts } from './restart-verdict.js';
import { RollingRestarts } from './rolling-restarts.js';
import { settle, type Settlement } from './settle.js';
import { Storm } from './storm.js';
import { type Check, judge } from './verdict.js';

const HELP = `npm run chaos -- [--minutes N] [--redis] [--seed S] [--rate N] [--rolling [--from DIR]]

Runs every role as processes (2 api, 2 workers, 1 admin) on a PostgreSQL of its own, with partners that order in both
modes at a fixed rate, and lets happen to them what happens: SIGKILL and SIGSTOP, restarts and crashes of PostgreSQL, a
disk that is full (where it runs as root, who may mount one), a queue that is lost, wholesalers that fail in every way,
receivers that hang, reset and lie. Then everybody is well again, and every promise is looked at.

  --minutes N   of the storm (60)
  --redis       queues and rate limits on a Redis that is killed and flushed
  --seed S      repeats the storm of an earlier run: the same things in the same order and at the same distances
  --rate N      orders a second (8)
  --rolling     no storm, but what every release does: each process of each role in turn is taken out of rotation, told to
                stop, and replaced, under the load; nobody may notice, and p99 stay within twice of what it is otherwise
  --from DIR    with --rolling: a built checkout of an older version, whose processes are there first, on the new schema

Exit code: 0 every promise was kept, 1 one was broken, 2 it could not run.`;

const PROGRESS_MS = 5_000;
const SHOWN_BREACHES = 10;

interface ChaosOptions {
  readonly minutes: number;
  readonly redis: boolean;
  readonly seed: number;
  readonly rate: number;
  readonly rolling: boolean;
  /** Of the version that is there first. */
  readonly from: string;
}

/** What happens to the service while partners order. */
interface Disturber {
  readonly total: number;
  run(signal: AbortSignal): Promise<void>;
  describe(): string;
}

let opened: ChaosBed | null = null;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void (opened?.close() ?? Promise.resolve()).finally(() => process.exit(2)));

try {
  const options = parse(process.argv.slice(2));
  if (options === null) console.log(HELP);
  else process.exitCode = (await run(options)) ? 0 : 1;
} catch (error) {
  console.error(`chaos could not run: ${(error as Error).stack}`);
  // Callers insist still, of a service that is no more.
  process.exit(2);
}

/** Whether every promise was kept. */
async function run(options: ChaosOptions): Promise<boolean> {
  const { minutes, redis, seed, rate, rolling, from } = options;
  const what = rolling ? 'rolling restarts' : 'chaos';
  console.log(`${what}: ${minutes} min${redis ? ' on Redis' : ''}, ${rate} orders/s, --seed ${seed}`);
  const bed = await ChaosBed.open({ redis, troubles: !rolling, portal: rolling, root: from });
  opened = bed;
  if (!rolling && !bed.postgres.canFillDisk) console.log('no disk will be full: only root may mount one');
  try {
    // Apart, so that the storm does not depend on how many purchases the machine begins.
    const load = new Load(bed, new Random(seed + 1));
    const restarts = rolling ? new RollingRestarts(bed) : null;
    const storm = restarts ?? new Storm(bed, new Random(seed));
    const readers = bed.partners.flatMap((partner) =>
      (['sandbox', 'live'] as const).map((mode) => new FeedReader(bed, partner, mode)),
    );
    await rage(bed, { load, storm, readers }, options);
    const settlement = await settle(bed, say);
    const missedPolls = readers.reduce((sum, { failed }) => sum + failed, 0);
    for (const reader of readers) await reader.finish();
    const checks = [
      { promise: 'nothing is owed any more', breaches: settlement.stuck, count: 1 },
      ...(await judge(bed, load, readers)),
      ...(restarts ? judgeRestarts(bed, load, restarts, missedPolls) : []),
    ];
    report(options, { bed, load, storm }, settlement);
    return showVerdict(checks);
  } finally {
    await bed.close();
  }
}

interface Actors {
  readonly load: Load;
  readonly storm: Disturber;
  readonly readers: readonly FeedReader[];
}

/** The storm, with the load and the readers beside it, for so many minutes. */
async function rage(bed: ChaosBed, { load, storm, readers }: Actors, options: ChaosOptions): Promise<void> {
  const over = AbortSignal.timeout(options.minutes * 60_000);
  const ended = new AbortController();
  const startedAt = performance.now();
  const progress = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    say(
      `${seconds} s: ${load.begun} purchases begun, ${load.accepted.size} accepted, ${load.waiting} insisting, ` +
        `${load.repeats} repeated calls, ${storm.total} disturbances, ${received(bed)} webhooks`,
    );
  }, PROGRESS_MS);
  try {
    const reading = Promise.all(readers.map((reader) => reader.run(ended.signal)));
    await Promise.all([load.run(options.rate, over), storm.run(over)]);
    ended.abort();
    await reading;
  } finally {
    clearInterval(progress);
    ended.abort();
  }
}

function report(
  { minutes, redis, seed }: ChaosOptions,
  { bed, load, storm }: { bed: ChaosBed; load: Load; storm: Disturber },
  { bySupport, seconds }: Settlement,
): void {
  const full = bed.postgres.canFillDisk
    ? `; a statement found the disk full ${bed.postgres.fullSeen} times`
    : '';
  console.log(`\nin ${minutes} min (--seed ${seed}): ${storm.describe()}${full}`);
  console.log(
    `${load.begun} purchases begun, ${load.accepted.size} accepted, ${load.refused} refused, ${load.unanswered} without ` +
      `an answer within five minutes, ${load.repeats} calls repeated; ${received(bed)} webhooks received; ` +
      `settled after ${seconds.toFixed(0)} s, ${bySupport} orders by support${redis ? '; queues on Redis' : ''}`,
  );
}

function showVerdict(checks: readonly Check[]): boolean {
  for (const { promise, breaches, count } of checks) {
    console.log(`${breaches.length === 0 ? 'kept  ' : 'BROKEN'} ${promise} (${count} looked at)`);
    for (const breach of breaches.slice(0, SHOWN_BREACHES)) console.log(`         ${breach}`);
    if (breaches.length > SHOWN_BREACHES)
      console.log(`         and ${breaches.length - SHOWN_BREACHES} more`);
  }
  const isKept = checks.every(({ breaches }) => breaches.length === 0);
  console.log(isKept ? 'verdict: every promise was kept' : 'verdict: a promise was BROKEN');
  return isKept;
}

function received({ endpoints }: ChaosBed): number {
  return endpoints.reduce((sum, { receiver }) => sum + receiver.received, 0);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Null for --help. @throws Error that says what was not understood */
function parse(args: readonly string[]): ChaosOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '60' },
      redis: { type: 'boolean', default: false },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      rate: { type: 'string', default: '8' },
      rolling: { type: 'boolean', default: false },
      from: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  if (values.from !== undefined && !values.rolling) throw new Error('--from needs --rolling');
  return {
    minutes: toNumber('--minutes', values.minutes, 24 * 60),
    redis: values.redis,
    seed: toNumber('--seed', values.seed, 2 ** 31),
    rate: toNumber('--rate', values.rate, 1_000),
    rolling: values.rolling,
    from: path.resolve(values.from ?? ROOT),
  };
}

function toNumber(option: string, text: string, most: number): number {
  const number = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || number > most || (number === 0 && option !== '--seed'))
    throw new Error(`${option} must be a number from 1 to ${most}`);
  return number;
}
