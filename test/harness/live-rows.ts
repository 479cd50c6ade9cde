import { randomUUID } from 'node:crypto';
import { newId } from '../../src/common/ids.js';
import { loadConfig } from '../../src/config/index.js';
import { SecretBox } from '../../src/infra/crypto/index.js';
import type { TestDatabase } from './database.js';
import { testEnvironment } from './settings.js';

export interface OrderRows {
  readonly orderId: string;
  readonly esimId: string;
  readonly eventId: string;
}

/** The rows of an issued order with one eSIM. */
export async function rowsOf({ pool }: TestDatabase, orderId: string): Promise<OrderRows> {
  const { rows } = await pool.query<{ esim_id: string; event_id: string }>(
    `SELECT e.id AS esim_id, v.id AS event_id
     FROM esims e JOIN events v ON v.body::jsonb -> 'data' ->> 'order_id' = e.order_id AND v.type = 'order.issued'
     WHERE e.order_id = $1`,
    [orderId],
  );
  return { orderId, esimId: rows[0]!.esim_id, eventId: rows[0]!.event_id };
}

/** Copies an issued order, its eSIM and its event into live, because no live provider is connected. */
export async function copyToLive(database: TestDatabase, source: OrderRows): Promise<OrderRows> {
  const copy = { orderId: newId('ord'), esimId: newId('esim'), eventId: newId('evt') };
  const secrets = new SecretBox(loadConfig(testEnvironment(database.url)));
  const install = {
    smdpAddress: 'smdp.live.example.com',
    matchingId: 'LIVE-MATCHING-ID',
    confirmationCode: null,
  };
  await copyRow(database, 'orders', source.orderId, { id: copy.orderId, provider_reference: randomUUID() });
  await copyRow(database, 'esims', source.esimId, {
    id: copy.esimId,
    order_id: copy.orderId,
    provider_esim_id: randomUUID(),
    install_secrets: secrets.seal(JSON.stringify(install), copy.esimId),
  });
  const { rows } = await database.pool.query<{ body: string }>('SELECT body FROM events WHERE id = $1', [
    source.eventId,
  ]);
  const body = Object.keys(copy).reduce(
    (text, name) => text.replaceAll(source[name as keyof OrderRows], copy[name as keyof OrderRows]),
    rows[0]!.body,
  );
  await copyRow(database, 'events', source.eventId, { id: copy.eventId, body, position: null });
  return copy;
}

/** Copies a top-up to the live copy of its eSIM. */
export async function copyTopupToLive(
  database: TestDatabase,
  topupId: string,
  { esimId }: OrderRows,
): Promise<string> {
  const id = newId('top');
  await copyRow(database, 'topups', topupId, { id, esim_id: esimId, provider_reference: randomUUID() });
  return id;
}

/** Adds a package that exists in live only. */
export async function addLivePackage(database: TestDatabase, id: string): Promise<void> {
  await copyRow(database, 'packages', 'pkg_fr_1gb_7d', { id });
  await database.pool.query(`UPDATE catalog_versions SET version = version + 1 WHERE mode = 'live'`);
}

async function copyRow(
  { pool }: TestDatabase,
  table: 'orders' | 'esims' | 'events' | 'packages' | 'topups',
  id: string,
  changes: Record<string, unknown>,
): Promise<void> {
  await pool.query(
    `INSERT INTO ${table} SELECT (jsonb_populate_record(t, $2)).* FROM ${table} t WHERE id = $1 AND mode = 'sandbox'`,
    [id, JSON.stringify({ ...changes, mode: 'live' })],
  );
}
