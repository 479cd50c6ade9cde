import { randomBytes } from 'node:crypto';
import { mintKey } from '../../src/api-keys/key-material.js';
import { newId } from '../../src/common/ids.js';
import type { Cleanups } from '../cleanups.js';
import { fillDatabase } from '../growth/fill.js';
import { ownedId } from '../growth/fill-sql.js';
import { BIG_PARTNER } from '../growth/scale.js';
import { DatabaseServer } from '../service/database-server.js';
import { createPartners, createEndpoint } from '../service/partners.js';
import { type ServiceOptions, ServiceProcess } from '../service/service-process.js';
import { Attacker } from './attacker.js';
import { Healthy } from './healthy.js';

const DATABASE = 'bench_attacks';
const HANGING_PARTNERS = 7;
const ENDPOINTS_OF_EACH = 20;
const COSTLY_ENDPOINTS = 10;
const LIVE_PARTNERS = 250;

export interface AttackBed {
  readonly attacker: Attacker;
  readonly healthy: Healthy;
  /** Waits until nothing is left of an attack that the worker could be busy with. */
  settle(): Promise<void>;
}

/** A service with a past, roles apart, behind one proxy; a healthy partner, and an attacker with partners of its own. */
export async function openAttackBed(
  scale: { readonly orders: number; readonly deliveries: number; readonly minFreeGb: number },
  cleanups: Cleanups,
): Promise<AttackBed> {
  const server = cleanups.stopping(await DatabaseServer.start());
  await fillDatabase(server, { database: DATABASE, ...scale }, scale.minFreeGb);
  await closeWhatIsOpen(server);
  const [good, bad, refused, costly, ...hanging] = await createPartners(
    server,
    DATABASE,
    4 + HANGING_PARTNERS,
  );
  const many = await createPartners(server, DATABASE, LIVE_PARTNERS, 'live');
  await server.query(
    `UPDATE api_keys SET allowed_cidrs = '{203.0.113.0/24}' WHERE id = $1`,
    [refused!.keyId],
    DATABASE,
  );
  const services = await startServices(server, cleanups);
  const [healthy, attacker] = [cleanups.stopping(new Healthy()), cleanups.stopping(new Attacker())];
  const hookUrl = await healthy.open({ apiUrl: services.api.apiUrl, key: good!.key });
  const { hangingUrl, costlyUrl } = await attacker.open({
    apiUrl: services.api.apiUrl,
    metricsUrls: [services.api.opsUrl, services.worker.opsUrl],
    key: bad!.key,
    bigKey: await mintBigKey(server),
    manyKeys: many.map(({ key }) => key),
    hangingKeys: hanging.map(({ key }) => key),
    costlyKey: costly!.key,
    refusedKey: refused!.key,
  });
  await createEndpoint(services.admin, good!.partnerId, hookUrl);
  for (let nth = 0; nth < COSTLY_ENDPOINTS; nth++)
    await createEndpoint(services.admin, costly!.partnerId, `${costlyUrl}/${nth}`);
  for (const { partnerId } of hanging)
    for (let nth = 0; nth < ENDPOINTS_OF_EACH; nth++)
      await createEndpoint(services.admin, partnerId, `${hangingUrl}/${nth}`);
  return { attacker, healthy, settle: () => untilIdle(server) };
}

async function startServices(
  server: DatabaseServer,
  cleanups: Cleanups,
): Promise<Record<'api' | 'admin' | 'worker', ServiceProcess>> {
  const env = {
    TRUST_PROXY: '1',
    WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    // What is filled in stays: purges are no part of this.
    SANDBOX_ORDER_RETENTION_DAYS: '3650',
    SECRETS_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  };
  const databaseUrl = server.url(DATABASE);
  const start = async (role: ServiceOptions['role']): Promise<ServiceProcess> =>
    cleanups.stopping(await ServiceProcess.start({ role, databaseUrl, env }));
  return { api: await start('api'), admin: await start('admin'), worker: await start('worker') };
}

/** The filled endpoints have no receiver, and what is open there is no part of any attack. */
async function closeWhatIsOpen(server: DatabaseServer): Promise<void> {
  await server.query(
    `DELETE FROM webhook_deliveries WHERE status = 'pending';
     UPDATE webhook_endpoints SET enabled = false;
     DELETE FROM orders WHERE next_attempt_at IS NOT NULL`,
    [],
    DATABASE,
  );
}

async function mintBigKey(server: DatabaseServer): Promise<string> {
  const { key, hash, last4 } = mintKey('live');
  await server.query(
    `INSERT INTO api_keys (id, partner_id, mode, hash, last4) VALUES ($1, $2, 'live', $3, $4)`,
    [newId('key'), ownedId('ptn', BIG_PARTNER, 0), hash, last4],
    DATABASE,
  );
  return key;
}

/** What hangs is taken back, so that the next attack begins where the first did. */
async function untilIdle(server: DatabaseServer): Promise<void> {
  const hanging = `endpoint_id IN (SELECT id FROM webhook_endpoints WHERE url LIKE '%/hook/%')`;
  await server.query(
    `DELETE FROM webhook_deliveries WHERE status = 'pending' AND started_at IS NULL AND ${hanging}`,
    [],
    DATABASE,
  );
  const owed = `SELECT 1 FROM orders WHERE next_attempt_at IS NOT NULL LIMIT 1`;
  while ((await server.query(owed, [], DATABASE)).length > 0)
    await new Promise((resolve) => setTimeout(resolve, 200));
}
