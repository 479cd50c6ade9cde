import { randomBytes } from 'node:crypto';
import type { Cleanups } from '../cleanups.js';
import type { DatabaseServer } from '../service/database-server.js';
import { mintKey } from '../../src/api-keys/key-material.js';
import { newId } from '../../src/common/ids.js';
import { SecretBox } from '../../src/infra/crypto/index.js';
import { ServiceProcess } from '../service/service-process.js';
import { ownedId } from './fill-sql.js';
import { BIG_PARTNER, type GrowthScale } from './scale.js';
import { WorkerParts } from './worker-parts.js';

const MODES = ['live', 'sandbox'] as const;
type Mode = (typeof MODES)[number];
/** Everything the measured partner has is asked for by ids of its own, drawn from all its days. */
const PICKS = 200;

/** Values for filters and ids, of the measured partner. */
export interface Picks {
  readonly orders: readonly string[];
  readonly esims: readonly { readonly id: string; readonly iccid: string; readonly order_id: string }[];
  readonly topups: readonly { readonly id: string; readonly esim_id: string }[];
  readonly events: readonly string[];
  readonly deliveries: readonly {
    readonly id: string;
    readonly endpoint_id: string;
    readonly event_id: string;
  }[];
  readonly references: readonly string[];
  readonly calls: readonly string[];
}

/** One filled database with an API process, an admin process, and the worker's parts without its loops. */
export class GrowthBed {
  readonly partnerId = ownedId('ptn', BIG_PARTNER, 0);

  private constructor(
    readonly server: DatabaseServer,
    readonly scale: GrowthScale,
    readonly api: ServiceProcess,
    readonly admin: ServiceProcess,
    readonly worker: WorkerParts,
    readonly keys: Readonly<Record<Mode, string>>,
    readonly picks: Picks,
  ) {}

  static async open(server: DatabaseServer, scale: GrowthScale, cleanups: Cleanups): Promise<GrowthBed> {
    const databaseUrl = server.url(scale.database);
    const env = settings();
    const keys = await mintKeys(server, scale.database);
    const picks = await pick(server, scale);
    await sealPicked(server, scale.database, picks, env['SECRETS_KEYS']!);
    const api = cleanups.stopping(await ServiceProcess.start({ role: 'api', databaseUrl, env }));
    const admin = cleanups.stopping(await ServiceProcess.start({ role: 'admin', databaseUrl, env }));
    const ADMIN_TOKENS = `bench:${randomBytes(24).toString('hex')}`;
    const worker = cleanups.stopping(
      await WorkerParts.open({ ...env, ADMIN_TOKENS, DATABASE_URL: databaseUrl }),
    );
    return new GrowthBed(server, scale, api, admin, worker, keys, picks);
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.server.query<Row>(sql, values, this.scale.database);
  }
}

/** A live order is accepted when its provider is connected; nobody listens there, and no worker calls it. */
function settings(): Readonly<Record<string, string>> {
  return {
    NODE_ENV: 'production',
    LOG_LEVEL: 'warn',
    PORTAL_URL: 'https://portal.invalid',
    SECRETS_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    LISTS_PER_PARTNER: '100',
    RATE_LIMIT_PER_MINUTE: '6000000',
    RATE_LIMIT_BURST: '1000000',
    ESIM_ACCESS_BASE_URL: 'https://127.0.0.1:9',
    ESIM_ACCESS_CODE: randomBytes(16).toString('hex'),
    ESIM_ACCESS_SECRET: randomBytes(16).toString('hex'),
  };
}

async function mintKeys(server: DatabaseServer, database: string): Promise<Record<Mode, string>> {
  const keys = { live: mintKey('live'), sandbox: mintKey('sandbox') };
  for (const mode of MODES)
    await server.query(
      'INSERT INTO api_keys (id, partner_id, mode, hash, last4) VALUES ($1, $2, $3, $4, $5)',
      [newId('key'), ownedId('ptn', BIG_PARTNER, 0), mode, keys[mode].hash, keys[mode].last4],
      database,
    );
  return { live: keys.live.key, sandbox: keys.sandbox.key };
}

async function pick(server: DatabaseServer, scale: GrowthScale): Promise<Picks> {
  const partner = ownedId('ptn', BIG_PARTNER, 0);
  const some = async <Row extends object>(
    columns: string,
    table: string,
    rows: number,
    more = '',
  ): Promise<Row[]> => {
    const percent = Math.min(100, (PICKS * 3_000) / rows);
    const found = await server.query<Row>(
      `SELECT ${columns} FROM ${table} TABLESAMPLE SYSTEM (${percent}) WHERE partner_id = $1 ${more} ORDER BY random() LIMIT ${PICKS}`,
      [partner],
      scale.database,
    );
    if (found.length === 0) throw new Error(`${scale.database} has no ${table} of the measured partner`);
    return found;
  };
  const ids = async (table: string, rows: number, more = '', column = 'id'): Promise<string[]> =>
    (await some<{ id: string }>(`${column} AS id`, table, rows, more)).map(({ id }) => id);
  const { orders, deliveries } = scale;
  return {
    orders: await ids('orders', orders, `AND mode = 'live'`),
    esims: await some('id, iccid, order_id', 'esims', orders, `AND mode = 'live'`),
    topups: await some('id, esim_id', 'topups', orders / 20, `AND mode = 'live'`),
    events: await ids('events', deliveries / 4, `AND mode = 'live'`),
    deliveries: await some(
      'id, endpoint_id, event_id',
      'webhook_deliveries',
      deliveries,
      `AND mode = 'live' AND status = 'delivered'`,
    ),
    references: await ids('orders', orders, `AND mode = 'live' AND reference IS NOT NULL`, 'reference'),
    calls: await ids('api_calls', orders / 10, '', 'request_id'),
  };
}

/** Only these are read by id, so only these must be readable; the others are as long. */
async function sealPicked(
  server: DatabaseServer,
  database: string,
  { esims }: Picks,
  secretsKeys: string,
): Promise<void> {
  const [id, key] = secretsKeys.split(':');
  const box = new SecretBox({ secretKeys: [{ id: id!, key: Buffer.from(key!, 'base64') }] });
  const install = JSON.stringify({
    smdpAddress: 'smdp.example',
    matchingId: 'ABCDEF',
    confirmationCode: null,
  });
  await server.query(
    `UPDATE esims e SET install_secrets = s.sealed FROM unnest($1::text[], $2::text[]) AS s (id, sealed) WHERE e.id = s.id`,
    [esims.map((esim) => esim.id), esims.map((esim) => box.seal(install, esim.id))],
    database,
  );
}
