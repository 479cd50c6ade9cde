import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../../src/common/ids.js';
import { SecretBox } from '../../src/infra/crypto/index.js';
import { newSigningSecret } from '../../src/webhooks/signature.js';
import type { Cleanups } from '../cleanups.js';
import type { DatabaseServer } from '../service/database-server.js';
import { createPartners } from '../service/partners.js';
import { ServiceProcess } from '../service/service-process.js';
import { EventLoad } from './event-load.js';
import type { Receiver } from './receiver.js';
import { StatementCounts } from './statement-counts.js';

const IDLE_LOOK_EVERY_MS = 100;
const IDLE_PATIENCE_MS = 180_000;
/** Two roles, so that statements can be told apart. */
const PASSWORD = randomBytes(16).toString('hex');
const ROLES = ['bench_worker', 'bench_load'] as const;

export interface BedPlan {
  readonly server: DatabaseServer;
  readonly database: string;
  readonly receiver: Receiver;
  /** Endpoints of each partner; the receiver's URLs are taken in turn. */
  readonly endpointsPerPartner: readonly number[];
  readonly profile?: string | undefined;
}

/** One database with its endpoints, one worker, and whoever records events. */
export class WebhookBed {
  private constructor(
    readonly plan: BedPlan,
    /** In the order of `endpointsPerPartner`. */
    readonly partnerIds: readonly string[],
    /** In the order of the receiver's URLs. */
    readonly endpointIds: readonly string[],
    readonly secrets: readonly string[],
    readonly worker: ServiceProcess,
    readonly load: EventLoad,
    readonly statements: StatementCounts,
  ) {}

  static async prepare(plan: BedPlan, cleanups: Cleanups): Promise<WebhookBed> {
    const { server, database } = plan;
    await server.createDatabase(database);
    const key = randomBytes(32);
    const secretsKeys = `bench:${key.toString('base64')}`;
    const partners = await createPartners(server, database, plan.endpointsPerPartner.length);
    const partnerIds = partners.map((partner) => partner.partnerId);
    const { ids, secrets } = await createEndpoints(plan, partnerIds, key);
    const [workerUrl, loadUrl] = await createRoles(server, database);
    const worker = cleanups.stopping(
      await ServiceProcess.start({
        role: 'worker',
        databaseUrl: workerUrl!,
        env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true', SECRETS_KEYS: secretsKeys },
        profile: plan.profile,
      }),
    );
    const load = cleanups.stopping(await EventLoad.start({ databaseUrl: loadUrl!, secretsKeys }));
    const statements = await StatementCounts.open(server, database);
    return new WebhookBed(plan, partnerIds, ids, secrets, worker, load, statements);
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.plan.server.query<Row>(sql, values, this.plan.database);
  }

  /** Closed endpoints hold what is owed (D32); opened ones send it at the worker's next sweep. */
  async open(endpoints: readonly number[], open: boolean): Promise<void> {
    await this.query('UPDATE webhook_endpoints SET enabled = $2 WHERE id = ANY ($1)', [
      endpoints.map((index) => this.endpointIds[index]),
      open,
    ]);
  }

  /** Waits until every outcome is committed. @throws Error when something stays owed */
  async untilIdle(): Promise<void> {
    const deadline = performance.now() + IDLE_PATIENCE_MS;
    for (;;) {
      const [row] = await this.query<{ owed: boolean }>(
        `SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE status = 'pending') AS owed`,
      );
      if (!row?.owed) return;
      if (performance.now() > deadline) throw new Error('deliveries are still owed');
      await sleep(IDLE_LOOK_EVERY_MS);
    }
  }

  /** As autovacuum would have done by now, and not in the middle of a round. */
  async settle(): Promise<void> {
    await this.query('VACUUM ANALYZE');
    await this.query('CHECKPOINT');
  }
}

async function createEndpoints(
  { server, database, receiver, endpointsPerPartner }: BedPlan,
  partnerIds: readonly string[],
  key: Buffer,
): Promise<{ ids: readonly string[]; secrets: readonly string[] }> {
  const box = new SecretBox({ secretKeys: [{ id: 'bench', key }] });
  const owners = partnerIds.flatMap((id, index) => new Array<string>(endpointsPerPartner[index]!).fill(id));
  const ids = owners.map(() => newId('whe'));
  const secrets = owners.map(newSigningSecret);
  await server.query(
    `INSERT INTO webhook_endpoints (id, partner_id, mode, url, secret)
     SELECT id, partner_id, 'sandbox', url, secret
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w (id, partner_id, url, secret)`,
    [ids, owners, receiver.urls.slice(0, ids.length), ids.map((id, index) => box.seal(secrets[index]!, id))],
    database,
  );
  return { ids, secrets };
}

/** The same database as two roles, so that statements can be told apart. */
async function createRoles(server: DatabaseServer, database: string): Promise<string[]> {
  const urls: string[] = [];
  for (const role of ROLES) {
    await server.query(
      `DO $$ BEGIN CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD '${PASSWORD}';
       EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
    );
    const url = new URL(server.url(database));
    url.username = role;
    url.password = PASSWORD;
    urls.push(url.href);
  }
  return urls;
}
