import { randomBytes } from 'node:crypto';
import type { Cleanups } from '../cleanups.js';
import type { DatabaseServer } from '../service/database-server.js';
import { createEndpoint, createPartners } from '../service/partners.js';
import { cpuSecondsOf, cpuSecondsOfTree } from '../service/process-facts.js';
import { ServiceProcess, type ServiceRole } from '../service/service-process.js';
import { OrderLife } from './order-life.js';

export const POOL_MAX = 16;

/** A database, the processes that share the work on it, and one partner who orders. */
export interface LifeBed {
  readonly server: DatabaseServer;
  readonly database: string;
  /** By the name that a report shows: the role, numbered from the second one on. */
  readonly services: ReadonlyMap<string, ServiceProcess>;
  /** Other processes whose CPU time an order costs, by name. */
  readonly besides: ReadonlyMap<string, number>;
  readonly life: OrderLife;
  /** Opens its connections; just before the first load, as an API closes those that say nothing. */
  connect(): void;
}

export interface LifeLayout {
  readonly server: DatabaseServer;
  readonly database: string;
  /** A role as often as it has processes. */
  readonly roles: readonly ServiceRole[];
  readonly profile: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly besides?: ReadonlyMap<string, number>;
}

/** Starts the processes; all that takes calls is called in turn. */
export async function prepareLife(layout: LifeLayout, cleanups: Cleanups): Promise<LifeBed> {
  const { server, database, roles, profile, besides = new Map() } = layout;
  const databaseUrl = await server.createDatabase(database);
  const [partner] = await createPartners(server, database, 1);
  const life = cleanups.stopping(await OrderLife.start());
  const env = {
    WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    DATABASE_POOL_MAX: String(POOL_MAX),
    // The worker opens what the admin role seals.
    SECRETS_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    ...layout.env,
  };
  const admin = await ServiceProcess.start({ role: 'admin', databaseUrl, env });
  await createEndpoint(admin, partner!.partnerId, life.receiverUrl);
  await admin.stop();
  const services = new Map<string, ServiceProcess>();
  for (const role of roles) {
    const name = nameOf(role, services);
    const options = { role, databaseUrl, env, profile: profile ? `${name}-life` : undefined };
    services.set(name, cleanups.stopping(await ServiceProcess.start(options)));
  }
  const apis = [...services].filter(([name]) => !name.startsWith('worker')).map(([, { apiUrl }]) => apiUrl);
  return { server, database, services, besides, life, connect: () => life.connect(apis, partner!.key) };
}

function nameOf(role: ServiceRole, services: ReadonlyMap<string, ServiceProcess>): string {
  const first = role === 'all' ? 'service' : role;
  const taken = [...services.keys()].filter((name) => name.startsWith(first)).length;
  return taken === 0 ? first : `${first} ${taken + 1}`;
}

/** CPU seconds so far, by process; without /proc nothing. */
export function cpuOf({ services, server, besides }: LifeBed): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  const pids = [...services].map(([name, { pid }]): [string, number] => [name, pid]);
  for (const [name, pid] of [...pids, ...besides]) {
    const seconds = cpuSecondsOf(pid);
    if (seconds !== null) times.set(name, seconds);
  }
  const database = cpuSecondsOfTree(server.pid);
  if (database !== null) times.set('PostgreSQL', database);
  return times;
}

/** Milliseconds an order, by process. */
export function costPerOrder(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  orders: number,
): ReadonlyMap<string, number> {
  return new Map(
    [...after].map(([name, seconds]) => [name, ((seconds - before.get(name)!) / orders) * 1_000]),
  );
}

/** What the database says of orders whose webhook stayed out. @throws Error always */
export async function explain({ server, database }: LifeBed, error: unknown): Promise<never> {
  const count = (sql: string): Promise<object[]> => server.query(sql, [], database);
  const facts = [
    await count(
      `SELECT status, upstream_attempts, left(last_error, 80) AS error, count(*)::int FROM orders
       WHERE status <> 'issued' GROUP BY 1, 2, 3`,
    ),
    await count(
      `SELECT status, attempt_count AS attempts, last_outcome AS outcome, last_error AS error, count(*)::int
       FROM webhook_deliveries WHERE status <> 'delivered' GROUP BY 1, 2, 3, 4`,
    ),
    await count('SELECT enabled, blocked_until, consecutive_blocks, slow_start_since FROM webhook_endpoints'),
  ];
  throw new Error(`${(error as Error).message}: ${JSON.stringify(facts)}`, { cause: error });
}
