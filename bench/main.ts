/** `npm run bench`: parses the options, runs the subjects, prints their tables and saves them in bench/results. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { benchAttacks } from './attacks.js';
import { benchCatalog } from './catalog.js';
import { benchGrowth } from './growth.js';
import { benchLife } from './life.js';
import { benchListen } from './listen.js';
import { benchMemory } from './memory.js';
import { benchOrders } from './orders.js';
import { Cleanups } from './shared/child.js';
import { type MachineFacts, readMachineFacts, renderMachine } from './shared/machine.js';
import { renderSection, RESULTS, type Section } from './shared/report.js';
import { benchSoak } from './soak.js';
import { benchWebhooks, WEBHOOK_PARTS } from './webhooks.js';

type Bench = (options: BenchOptions, cleanups: Cleanups) => Promise<readonly Section[]>;

const BENCHES: Readonly<Record<string, Bench>> = {
  catalog: benchCatalog,
  orders: benchOrders,
  life: benchLife,
  memory: benchMemory,
  webhooks: benchWebhooks,
  growth: benchGrowth,
  soak: benchSoak,
  attacks: benchAttacks,
  listen: benchListen,
};
/** Subjects that `all` runs. */
const SHORT = ['catalog', 'orders', 'life', 'memory', 'webhooks'];
const PARTS: Readonly<Record<string, readonly string[]>> = {
  life: ['processes'],
  webhooks: Object.keys(WEBHOOK_PARTS),
};
/** Maximum number of rows in one table. More would not fit on one disk. */
const MAX_ROWS = 1_000_000_000;

export interface BenchOptions {
  readonly subjects: readonly string[];
  /** A part of `life` or `webhooks`; null runs the subject's default parts. */
  readonly part: string | null;
  /** Fewer rows and shorter rounds. */
  readonly quick: boolean;
  readonly rounds: number;
  readonly warmupMs: number;
  readonly roundMs: number;
  readonly connections: number;
  /** Writes a CPU profile of every tested process to the results. */
  readonly profile: boolean;
  /** Another built checkout to compare with, or null. */
  readonly against: string | null;
  readonly growth: GrowthOptions;
  /** Duration of `soak` and `listen`. */
  readonly minutes: number;
}

export interface GrowthOptions {
  readonly orders: number;
  readonly deliveries: number;
  /** The folder that keeps the filled databases; null uses a temporary folder. */
  readonly dataDir: string | null;
  /** Filling stops when less disk space is free. */
  readonly minFreeGb: number;
  /** Samples per operation and database. */
  readonly samples: number;
}

const HELP = `npm run bench -- [SUBCOMMAND] [options]

  catalog   GET /v1/catalog, compared with a bare Fastify server that returns the same payload
  orders    POST /v1/orders in Sandbox and Live, compared with a loop that repeats its SQL through pg alone
  life      POST to webhook: sustained rate, latency at fractions of it, CPU per order and process
  memory    memory of the processes, idle and under load
  webhooks  one worker: deliveries compared with signed POSTs in a loop, latency, a backlog's effect on other partners
  all       all of the above (default)
  growth    every operation on a small (10 thousand orders) and a large database, side by side
  soak      half of the machine's maximum rate for an hour, with retention running
  attacks   a healthy partner without and with each of twelve attacks
  listen    cost of an idle \`esim listen\` and of 1,000 waiting calls without events (use --minutes 10)

  --quick            fewer and shorter rounds: a smoke test, not a result
  --rounds N         rounds per figure (7; with --quick 3)
  --part NAME        webhooks: throughput, latency or backlog; life: processes (1 or 2 of each role, Redis)
  --against DIR      life: another checkout to compare with; run npm ci and npm run build there first
  --connections N    connections of the load generator (64)
  --profile          write a CPU profile of each service process to bench/results
  --orders N         growth and attacks: orders in the large database (100000)
  --deliveries N     growth and attacks: its deliveries (500000)
  --data DIR         growth: keeps the filled databases there; a second run resumes filling or only measures
  --min-free-gb N    growth: stops filling when less disk space is free (15)
  --samples N        growth: samples per operation and database (200)
  --minutes N        soak and listen: duration (60)
  --help

A ratio compares two measurements of the same round. Their order alternates between rounds. The tables show the median,
the lowest and the highest round. Run nothing else on the machine. Results are saved as JSON in bench/results.
`;

const cleanups = new Cleanups();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanups.stop().finally(() => process.exit(1)));

try {
  const options = parseOptions(process.argv.slice(2));
  if (options) await run(options);
  else console.log(HELP);
} catch (error) {
  console.error(`bench failed: ${(error as Error).message}`);
  process.exitCode = 1;
}

async function run(options: BenchOptions): Promise<void> {
  mkdirSync(RESULTS, { recursive: true });
  const machine = readMachineFacts();
  console.log(renderMachine(machine));
  const sections: Section[] = [];
  for (const subject of options.subjects) {
    try {
      for (const section of await BENCHES[subject]!(options, cleanups)) {
        sections.push(section);
        console.log(renderSection(section));
      }
    } finally {
      await cleanups.stop();
    }
  }
  console.log(`\nsaved in ${keep(options, machine, sections)}`);
}

function keep(options: BenchOptions, machine: MachineFacts, sections: readonly Section[]): string {
  const date = new Date().toISOString();
  const name = options.subjects.length === 1 ? options.subjects[0] : 'all';
  const file = path.join(RESULTS, `${date.replaceAll(':', '-').slice(0, 19)}-${name}.json`);
  const loadAverageAfter = readMachineFacts().loadAverage;
  writeFileSync(file, `${JSON.stringify({ date, options, machine, loadAverageAfter, sections }, null, 2)}\n`);
  return path.relative(process.cwd(), file);
}

/**
 * @returns the options, or null for --help
 * @throws Error that names the wrong argument
 */
function parseOptions(args: readonly string[]): BenchOptions | null {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      connections: { type: 'string', default: '64' },
      part: { type: 'string' },
      orders: { type: 'string', default: '100000' },
      deliveries: { type: 'string', default: '500000' },
      data: { type: 'string' },
      'min-free-gb': { type: 'string', default: '15' },
      samples: { type: 'string' },
      minutes: { type: 'string', default: '60' },
      against: { type: 'string' },
    },
  });
  if (values.help) return null;
  const [name = 'all', ...others] = positionals;
  if (others.length > 0) throw new Error(`expected one subcommand, got "${positionals.join(' ')}"`);
  const subjects = name === 'all' ? SHORT : oneOf('subcommand', name, [...Object.keys(BENCHES), 'all']);
  const parts = PARTS[name] ?? [];
  return {
    subjects,
    part: values.part === undefined ? null : oneOf(`part of ${name}`, values.part, parts)[0]!,
    quick: values.quick,
    rounds: toCount('--rounds', values.rounds ?? (values.quick ? '3' : '7')),
    warmupMs: values.quick ? 500 : 1_000,
    roundMs: values.quick ? 2_000 : 5_000,
    connections: toCount('--connections', values.connections),
    profile: values.profile,
    minutes: toCount('--minutes', values.minutes),
    against: values.against ?? null,
    growth: {
      orders: toCount('--orders', values.orders, MAX_ROWS),
      deliveries: toCount('--deliveries', values.deliveries, MAX_ROWS),
      dataDir: values.data ?? null,
      minFreeGb: toCount('--min-free-gb', values['min-free-gb']),
      samples: toCount('--samples', values.samples ?? (values.quick ? '30' : '200')),
    },
  };
}

function oneOf(what: string, name: string, known: readonly string[]): readonly string[] {
  if (!known.includes(name)) throw new Error(`unknown ${what} "${name}"; one of: ${known.join(', ')}`);
  return [name];
}

function toCount(option: string, text: string, max = 9_999): number {
  if (!/^[1-9]\d{0,9}$/.test(text) || Number(text) > max)
    throw new Error(`${option} must be a whole number from 1 to ${max}`);
  return Number(text);
}
