import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../src/common/ids.js';
import { newSigningSecret } from '../src/webhooks/signature.js';
import { Child, type Cleanups } from './shared/child.js';
import type { DatabaseServer } from './shared/database-server.js';
import { createPartners } from './shared/partners.js';
import { secretBox, SECRETS_KEYS, ServiceProcess } from './shared/service-process.js';
import { StatementCounts } from './shared/statement-counts.js';
import type { EventsApi } from './webhooks-events.child.js';
import type { Counts, ReceiverApi } from './webhooks-receiver.child.js';

const LOOK_EVERY_MS = 50;
/** If no webhook arrives for this long, no more will. */
const SILENCE_MS = 30_000;
const PASSWORD = randomBytes(16).toString('hex');

export interface BedPlan {
  readonly server: DatabaseServer;
  readonly database: string;
  /** Number of endpoints of each partner. Each endpoint has its own port. */
  readonly endpointsPerPartner: readonly number[];
  readonly profile?: string | undefined;
}

/** One database with endpoints, one worker, a receiver and a process that records events. */
export class WebhookBed {
  private constructor(
    readonly plan: BedPlan,
    /** In the order of `endpointsPerPartner`. */
    readonly partnerIds: readonly string[],
    /** In the order of the receiver's ports. */
    readonly endpointIds: readonly string[],
    readonly urls: readonly string[],
    readonly secrets: readonly string[],
    readonly worker: ServiceProcess,
    readonly receiver: Child<ReceiverApi>,
    readonly events: Child<EventsApi>,
    readonly statements: StatementCounts,
  ) {}

  static async open(plan: BedPlan, cleanups: Cleanups): Promise<WebhookBed> {
    const { server, database, endpointsPerPartner, profile } = plan;
    await server.createDatabase(database);
    const partners = await createPartners(server, database, endpointsPerPartner.length);
    const partnerIds = partners.map(({ partnerId }) => partnerId);
    const owners = partnerIds.flatMap((id, nth) => new Array<string>(endpointsPerPartner[nth]!).fill(id));
    const receiver = cleanups.stopping(
      Child.start<ReceiverApi>(new URL('./webhooks-receiver.child.js', import.meta.url)),
    );
    const ports = await receiver.call('listen', owners.length);
    const urls = ports.map((port) => `http://127.0.0.1:${port}/webhooks`);
    const endpointIds = owners.map(() => newId('whe'));
    const secrets = owners.map(newSigningSecret);
    const box = secretBox();
    await server.query(
      `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret)
       SELECT id, partner_id, 'sandbox', url, secret
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w (id, partner_id, url, secret)`,
      [endpointIds, owners, urls, endpointIds.map((id, nth) => box.seal(secrets[nth]!, id))],
      database,
    );
    const databaseUrl = await urlAs('bench_worker', server, database);
    const worker = cleanups.stopping(await ServiceProcess.start({ role: 'worker', databaseUrl, profile }));
    const events = cleanups.stopping(
      Child.start<EventsApi>(new URL('./webhooks-events.child.js', import.meta.url)),
    );
    await events.call('open', await urlAs('bench_load', server, database), SECRETS_KEYS);
    const statements = await StatementCounts.open(server, database);
    return new WebhookBed(plan, partnerIds, endpointIds, urls, secrets, worker, receiver, events, statements);
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.plan.server.query<Row>(sql, values, this.plan.database);
  }

  /** Closed endpoints hold their deliveries (D32). The worker's next sweep delivers to reopened ones. */
  async open(endpoints: readonly number[], isOpen: boolean): Promise<void> {
    await this.query('UPDATE webhook_endpoints SET enabled = $2 WHERE id = ANY ($1)', [
      endpoints.map((index) => this.endpointIds[index]),
      isOpen,
    ]);
  }

  /**
   * Waits until every outcome is committed.
   * @throws Error when a delivery stays open
   */
  untilIdle(): Promise<void> {
    return this.plan.server.drain(this.plan.database, 'deliveries');
  }

  settle(): Promise<void> {
    return this.plan.server.settle(this.plan.database);
  }

  /**
   * Polls the receiver's counts until they satisfy `done`.
   * @throws Error when webhooks stop arriving before that
   */
  async until(done: (counts: Counts) => boolean): Promise<Counts> {
    let [lastTotal, deadlineMs] = [-1, 0];
    for (;;) {
      const counts = await this.receiver.call('counts');
      if (done(counts)) return counts;
      const total = totalOf(counts, 'requests');
      if (total !== lastTotal) deadlineMs = performance.now() + SILENCE_MS;
      else if (performance.now() > deadlineMs) throw new Error(`webhooks stopped coming after ${total}`);
      lastTotal = total;
      await sleep(LOOK_EVERY_MS);
    }
  }
}

export function totalOf({ seen }: Counts, what: 'requests' | 'connections'): number {
  return seen.reduce((sum, one) => sum + one[what], 0);
}

/** Percentage of requests on a reused connection. */
export function reusePercentOf(before: Counts | null, after: Counts): number {
  const since = (what: 'requests' | 'connections'): number =>
    totalOf(after, what) - (before ? totalOf(before, what) : 0);
  return Math.max(0, (1 - since('connections') / since('requests')) * 100);
}

/** Connects to the same database as a separate role, so that its statements are counted separately. */
async function urlAs(role: string, server: DatabaseServer, database: string): Promise<string> {
  await server.query(
    `DO $$ BEGIN CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD '${PASSWORD}';
     EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
  );
  const url = new URL(server.url(database));
  url.username = role;
  url.password = PASSWORD;
  return url.href;
}
