import { mintKey } from '../../src/api-keys/key-material.js';
import { newId } from '../../src/common/ids.js';
import type { Mode } from '../../src/common/mode.js';
import type { DatabaseServer } from './database-server.js';
import { PACKAGE, sendOk } from './http.js';
import type { ServiceProcess } from './service-process.js';

export interface BenchPartner {
  readonly partnerId: string;
  readonly keyId: string;
  readonly key: string;
}

/** Creates `count` partners with one key each. */
export async function createPartners(
  server: DatabaseServer,
  database: string,
  count: number,
  mode: Mode = 'sandbox',
): Promise<readonly BenchPartner[]> {
  const partnerIds = Array.from({ length: count }, () => newId('ptn'));
  await server.query(
    `INSERT INTO partners (id, name) SELECT id, 'Bench' FROM unnest($1::text[]) AS p (id)`,
    [partnerIds],
    database,
  );
  return createKeys(server, database, partnerIds, mode);
}

/** Creates one key per partner. */
export async function createKeys(
  server: DatabaseServer,
  database: string,
  partnerIds: readonly string[],
  mode: Mode,
): Promise<readonly BenchPartner[]> {
  const made = partnerIds.map((partnerId) => ({ partnerId, keyId: newId('key'), ...mintKey(mode) }));
  const column = <Name extends 'keyId' | 'hash' | 'last4'>(name: Name) => made.map((one) => one[name]);
  await server.query(
    `INSERT INTO api_keys (id, partner_id, mode, hash, last4)
     SELECT id, partner_id, $5, hash, last4
     FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS k (id, partner_id, hash, last4)`,
    [column('keyId'), partnerIds, column('hash'), column('last4'), mode],
    database,
  );
  await server.query('ANALYZE', [], database);
  return made;
}

/** Copies the Sandbox package to Live by SQL, without a provider's catalog. */
export async function createLivePackage(server: DatabaseServer, database: string): Promise<void> {
  await server.query(
    `INSERT INTO packages SELECT (jsonb_populate_record(p, '{"mode": "live", "cost_micros": 600000}')).*
     FROM packages p WHERE id = '${PACKAGE}' AND mode = 'sandbox' ON CONFLICT DO NOTHING;
     INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
     VALUES ('${PACKAGE}', 'esim_access', 'PFR1D7', 'base', 600000, 'USD') ON CONFLICT DO NOTHING`,
    [],
    database,
  );
}

/**
 * Creates a Sandbox webhook endpoint for the partner.
 * @throws Error when the admin API refuses it
 */
export async function createEndpoint(admin: ServiceProcess, partnerId: string, url: string): Promise<void> {
  const path = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  await createByAdmin(admin, path, { mode: 'sandbox', url });
}

/**
 * @returns the resource that the admin API created
 * @throws Error when the admin API refuses it
 */
export async function createByAdmin(
  { adminUrl, adminToken }: ServiceProcess,
  path: string,
  body: object,
): Promise<Readonly<Record<string, string | undefined>>> {
  return (await sendOk<{ data: Record<string, string> }>(adminUrl + path, adminToken, body)).data;
}
