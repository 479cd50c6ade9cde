import { randomInt } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { ChaosBed } from './bed.js';
import { FAULT_GROUPS, type FaultGroup } from './faults.js';
import { runStorm, type StormOptions } from './storm.js';
import type { Check } from './verdict.js';

const HELP = `npm run chaos -- [--minutes N] [--redis] [--seed S] [--rate N] [--faults A,B] [--rolling [--from DIR]]

Runs every role of the service (2 api, 2 worker and 1 admin processes) on its own PostgreSQL, while partners order in both
modes at a fixed rate and random faults happen. Then all faults stop, and the verdict checks every promise.

  --minutes N   duration of the storm (60)
  --redis       uses Redis for queues and rate limits, and kills and flushes it
  --seed S      repeats the storm of an earlier run: the same faults in the same order and at the same intervals
  --rate N      orders per second (8)
  --faults A,B  groups of faults (default: all): deaths (SIGKILL and SIGSTOP of processes, restarts of PostgreSQL, a lost
                queue), crashes (of PostgreSQL, and a full disk if root can mount one), silence (connections to PostgreSQL
                that drop packets), wholesalers (which fail in many ways)
  --rolling     no storm but a release: takes each process of each role out of rotation in turn, stops and replaces it
                under load; no partner may notice, and p99 may at most double
  --from DIR    with --rolling: a built checkout of an older version that the first processes run, on the new schema

Exit code: 0 if every promise was kept, 1 if one was broken, 2 if the command could not run.`;

const SHOWN_BREACHES = 10;

let opened: ChaosBed | null = null;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void (opened?.close() ?? Promise.resolve()).finally(() => process.exit(2)));

try {
  const options = parse(process.argv.slice(2));
  if (options === null) console.log(HELP);
  else process.exitCode = (await run(options)) ? 0 : 1;
} catch (error) {
  console.error(`chaos could not run: ${(error as Error).stack}`);
  // Exit at once, because callers still retry against the stopped service.
  process.exit(2);
}

/** @returns whether every promise was kept */
async function run(options: StormOptions): Promise<boolean> {
  const { seconds, redis, rate, seed, faults } = options;
  const what = faults === 'rolling' ? 'rolling restarts' : faults.join(', ');
  console.log(`${what}: ${seconds / 60} min${redis ? ' on Redis' : ''}, ${rate} orders/s, --seed ${seed}`);
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const { summary, verdict } = await runStorm(options, say, (bed) => {
    opened = bed;
    if (faults.includes('crashes') && !bed.postgres.canFillDisk)
      console.log('disk-full faults are skipped: only root can mount the disk');
  });
  console.log(`\nin ${seconds / 60} min (--seed ${seed}): ${summary.join('\n')}`);
  return showVerdict(verdict);
}

function showVerdict(checks: readonly Check[]): boolean {
  for (const { promise, breaches, count } of checks) {
    console.log(`${breaches.length === 0 ? 'kept  ' : 'BROKEN'} ${promise} (${count} checked)`);
    for (const breach of breaches.slice(0, SHOWN_BREACHES)) console.log(`         ${breach}`);
    if (breaches.length > SHOWN_BREACHES)
      console.log(`         and ${breaches.length - SHOWN_BREACHES} more`);
  }
  const isKept = checks.every(({ breaches }) => breaches.length === 0);
  console.log(isKept ? 'verdict: every promise was kept' : 'verdict: a promise was BROKEN');
  return isKept;
}

/**
 * @returns the options, or null for --help
 * @throws Error that names the wrong argument
 */
function parse(args: readonly string[]): StormOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '60' },
      redis: { type: 'boolean', default: false },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      rate: { type: 'string', default: '8' },
      faults: { type: 'string', default: FAULT_GROUPS.join(',') },
      rolling: { type: 'boolean', default: false },
      from: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  if (values.from !== undefined && !values.rolling) throw new Error('--from needs --rolling');
  return {
    seconds: 60 * toNumber('--minutes', values.minutes, 24 * 60),
    redis: values.redis,
    seed: toNumber('--seed', values.seed, 2 ** 31),
    rate: toNumber('--rate', values.rate, 1_000),
    faults: values.rolling ? 'rolling' : values.faults.split(',').map(toFaultGroup),
    ...(values.from === undefined ? {} : { from: path.resolve(values.from) }),
  };
}

function toFaultGroup(name: string): FaultGroup {
  const group = FAULT_GROUPS.find((one) => one === name);
  if (!group)
    throw new Error(`unknown group of faults "${name}"; use one or more of: ${FAULT_GROUPS.join(', ')}`);
  return group;
}

function toNumber(option: string, text: string, max: number): number {
  const number = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || number > max || (number === 0 && option !== '--seed'))
    throw new Error(`${option} must be a number above 0, at most ${max}`);
  return number;
}
