import { parseArgs } from 'node:util';

export const SUBJECTS = ['catalog', 'orders', 'live', 'memory', 'webhooks'] as const;
export type Subject = (typeof SUBJECTS)[number];

export const WEBHOOK_PARTS = ['throughput', 'latency', 'hanging', 'backlog', 'history'] as const;
export type WebhookPartName = (typeof WEBHOOK_PARTS)[number];

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
}

export const HELP = `npm run bench -- [catalog | orders | live | memory | webhooks | all] [options]

  catalog   GET /v1/catalog against a bare Fastify server that answers the same payload
  orders    POST /v1/orders against a loop that repeats its SQL with nothing but pg; order to webhook
  live      as orders, in Live: all on one wallet, and on 1,000
  memory    what the processes hold, idle and under load
  webhooks  deliveries of one worker against signed POSTs in a loop; commit to first byte; who slows whom
  all       everything (default)

  --quick            fewer and shorter rounds: a look, not a result
  --rounds N         rounds of every figure (7; quick 3)
  --part NAME        of webhooks: throughput, latency, hanging, backlog or history (all of them)
  --connections N    connections of the load generator (64)
  --profile          write a CPU profile of each service process to bench/results
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
  };
}

function toSubjects(positionals: readonly string[]): readonly Subject[] {
  const [name = 'all', ...others] = positionals;
  if (others.length > 0) throw new Error(`one subcommand at a time, not "${positionals.join(' ')}"`);
  if (name === 'all') return SUBJECTS;
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

function toCount(option: string, text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`${option} must be a whole number from 1 to 9999`);
  return Number(text);
}
