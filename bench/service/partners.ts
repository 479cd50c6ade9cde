import { mintKey } from '../../src/api-keys/key-material.js';
import { newId } from '../../src/common/ids.js';
import type { Mode } from '../../src/common/mode.js';
import type { DatabaseServer } from './database-server.js';
import type { ServiceProcess } from './service-process.js';

export interface BenchPartner {
  readonly partnerId: string;
  readonly keyId: string;
  readonly key: string;
}

/** `count` partners with one key each. */
export async function createPartners(
  server: DatabaseServer,
  database: string,
  count: number,
  mode: Mode = 'sandbox',
): Promise<readonly BenchPartner[]> {
  const made = Array.from({ length: count }, () => ({
    partnerId: newId('ptn'),
    keyId: newId('key'),
    ...mintKey(mode),
  }));
  const partnerIds = made.map((one) => one.partnerId);
  await server.query(
    `INSERT INTO partners (id, name) SELECT id, 'Bench' FROM unnest($1::text[]) AS p (id)`,
    [partnerIds],
    database,
  );
  await server.query(
    `INSERT INTO api_keys (id, partner_id, mode, hash, last4)
     SELECT id, partner_id, $5, hash, last4
     FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS k (id, partner_id, hash, last4)`,
    [
      made.map((one) => one.keyId),
      partnerIds,
      made.map((one) => one.hash),
      made.map((one) => one.last4),
      mode,
    ],
    database,
  );
  await server.query('ANALYZE', [], database);
  return made;
}

/** A webhook endpoint of the partner in Sandbox. @throws Error when it is refused */
export async function createEndpoint(
  admin: Pick<ServiceProcess, 'adminUrl' | 'adminToken'>,
  partnerId: string,
  url: string,
): Promise<void> {
  await createByAdmin(admin, `/internal/v1/partners/${partnerId}/webhook-endpoints`, {
    mode: 'sandbox',
    url,
  });
}

/** What the admin API answers of something that it creates. @throws Error when it refuses */
export async function createByAdmin(
  { adminUrl, adminToken }: Pick<ServiceProcess, 'adminUrl' | 'adminToken'>,
  path: string,
  body: object,
): Promise<Readonly<Record<string, string | undefined>>> {
  const answer = await fetch(adminUrl + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
  });
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { data: Record<string, string | undefined> }).data;
}
