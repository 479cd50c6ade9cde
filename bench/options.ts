import { parseArgs } from 'node:util';

/** Of `all`. */
const SHORT_SUBJECTS = ['catalog', 'orders', 'life', 'live', 'memory', 'webhooks'] as const;
export const SUBJECTS = [
  ...SHORT_SUBJECTS,
  'roles',
  'growth',
  'soak',
  'attacks',
  'listen',
  'versions',
] as const;
export type Subject = (typeof SUBJECTS)[number];

export const WEBHOOK_PARTS = [
  'throughput',
  'latency',
  'statements',
  'hanging',
  'backlog',
  'history',
] as const;
export type WebhookPartName = (typeof WEBHOOK_PARTS)[number];

/** Of one table; what is more does not fit on a machine with one disk. */
const MOST_ROWS = 1_000_000_000;

export interface BenchOptions {
  readonly subjects: readonly Subject[];
  /** Of `webhooks`; null for all of them. */
  readonly part: WebhookPartName | null;
  /** Less work as well as less time. */
  readonly quick: boolean;
  readonly rounds: number;
  readonly warmupMs: number;
  readonly roundMs: number;
  readonly connections: number;
  /** Write a CPU profile of every process under test to the results. */
  readonly profile: boolean;
  /** A built checkout to compare with; null: none. */
  readonly against: string | null;
  readonly growth: GrowthOptions;
  /** Of `soak` and `listen`. */
  readonly minutes: number;
}

export interface GrowthOptions {
  readonly orders: number;
  readonly deliveries: number;
  /** Where the filled database is kept, or goes on to be filled; null: a folder that goes with the run. */
  readonly dataDir: string | null;
  /** Filling stops when less of the disk is free. */
  readonly minFreeGb: number;
  /** Of every operation and database. */
  readonly samples: number;
}

export const HELP = `npm run bench -- [SUBCOMMAND] [options]

  catalog   GET /v1/catalog against a bare Fastify server that answers the same payload
  orders    POST /v1/orders against a loop that repeats its SQL with nothing but pg; order to webhook
  life      POST to webhook: what is sustained, how late at half and all of that, CPU an order by process
  live      as orders, in Live: all on one wallet, and on 1,000
  memory    what the processes hold, idle and under load
  webhooks  deliveries of one worker against signed POSTs in a loop; commit to first byte; who slows whom
  all       all of these (default)
  roles     two workers against one, two APIs against one, Redis against PostgreSQL: orders/s, CPU an order
  growth    every operation on a database of 10 thousand orders and on one of many, side by side
  soak      half of what the machine can take, for an hour, with retention at work
  attacks   a healthy partner alone, and beside each of eleven attacks
  versions  an order's life on this checkout and on another one, in turn (--against DIR)
  listen    what an idle listen of the CLI costs a service at which nothing happens (--minutes 10)

  --quick            fewer and shorter rounds: a look, not a result
  --rounds N         rounds of every figure (7; quick 3)
  --part NAME        of webhooks: throughput, latency, statements, hanging, backlog or history (all of them)
  --connections N    connections of the load generator (64)
  --profile          write a CPU profile of each service process to bench/results
  --orders N         of growth and attacks: orders of the large database (100000)
  --deliveries N     of growth and attacks: its deliveries (500000)
  --data DIR         of growth: keeps the filled databases there; a second run goes on filling, or only measures
  --min-free-gb N    of growth: stops filling when less of the disk is free (15)
  --samples N        of growth: of every operation and database (200)
  --minutes N        of soak and listen (60)
  --against DIR      of versions: the other checkout, after npm ci and npm run build there
  --help

A ratio is made of two measurements of the same round, one after the other, and the order turns with every round;
printed are the median, the lowest and the highest round. Nothing else should run on the machine meanwhile.
Results are kept in bench/results as JSON.
`;

/** The options, or null for --help. @throws Error that says what was not understood */
export function parseOptions(args: readonly string[]): BenchOptions | null {
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
  return {
    subjects: toSubjects(positionals),
    part: toPart(values.part),
    quick: values.quick,
    rounds: toCount('--rounds', values.rounds ?? (values.quick ? '3' : '7')),
    warmupMs: values.quick ? 500 : 1_000,
    roundMs: values.quick ? 2_000 : 5_000,
    connections: toCount('--connections', values.connections),
    profile: values.profile,
    minutes: toCount('--minutes', values.minutes),
    against: values.against ?? null,
    growth: {
      orders: toCount('--orders', values.orders, MOST_ROWS),
      deliveries: toCount('--deliveries', values.deliveries, MOST_ROWS),
      dataDir: values.data ?? null,
      minFreeGb: toCount('--min-free-gb', values['min-free-gb']),
      samples: toCount('--samples', values.samples ?? (values.quick ? '30' : '200')),
    },
  };
}

function toSubjects(positionals: readonly string[]): readonly Subject[] {
  const [name = 'all', ...others] = positionals;
  if (others.length > 0) throw new Error(`one subcommand at a time, not "${positionals.join(' ')}"`);
  if (name === 'all') return SHORT_SUBJECTS;
  const subject = SUBJECTS.find((candidate) => candidate === name);
  if (!subject) throw new Error(`unknown subcommand "${name}"; one of: ${SUBJECTS.join(', ')}, all`);
  return [subject];
}

function toPart(name: string | undefined): WebhookPartName | null {
  if (name === undefined) return null;
  const part = WEBHOOK_PARTS.find((candidate) => candidate === name);
  if (!part) throw new Error(`unknown part "${name}"; one of: ${WEBHOOK_PARTS.join(', ')}`);
  return part;
}

function toCount(option: string, text: string, most = 9_999): number {
  if (!/^[1-9]\d{0,9}$/.test(text) || Number(text) > most)
    throw new Error(`${option} must be a whole number from 1 to ${most}`);
  return Number(text);
}
