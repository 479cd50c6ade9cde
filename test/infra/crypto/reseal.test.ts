import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyWebhookSignature } from '../../../src/webhooks/index.js';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../../harness/index.js';
import { waitingForLocks } from '../../harness/database.js';
import { DatabaseProxy } from '../../../chaos/database-proxy.js';
import { NodeChild } from '../../harness/child-process.js';
import { issueEsims } from '../../harness/order-steps.js';

const keyNamed = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const OLD = keyNamed('old');
const NEW = keyNamed('new');

let database: TestDatabase;
let receiver: TestReceiver;
let partnerId: string;
let esimId: string;
let install: Record<string, unknown>;
let secret: string;
let key: string;

beforeAll(async () => {
  database = await createTestDatabase();
  receiver = await startReceiver();
  const service = await startTestService({ database, env: { SECRETS_KEYS: OLD } });
  const partner = await service.createPartner();
  [partnerId, key] = [partner.id, partner.sandboxKey];
  [esimId] = (await issueEsims(partner.sandbox, 'pkg_fr_1gb_7d', 20)) as [string];
  await issueEsims(partner.sandbox, 'pkg_fr_1gb_7d', 1);
  install = (await partner.sandbox.get(`/v1/esims/${esimId}`)).body.data;
  expect(install['activation_code']).toBeTruthy();
  const endpoints = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  const { id } = (await service.admin.post(endpoints, { mode: 'sandbox', url: receiver.url })).body.data;
  const rotated = await service.admin.post(`${endpoints}/${id}/rotate-secret`, { grace_seconds: 86_400 });
  expect(rotated.status, rotated.text).toBeLessThan(300);
  secret = rotated.body.data.secret as string;
  await service.stop();
});

afterAll(async () => {
  await receiver.close();
  await database.drop();
});

/** Places in any table with text sealed by the key `old`. Also finds a sealed column that the command does not know. */
async function sealedByOld(): Promise<string[]> {
  const { rows } = await database.pool.query<{ place: string; query: string }>(`
    SELECT format('%s.%s', table_name, column_name) AS place,
           format('SELECT 1 FROM %I WHERE starts_with(%I, ''v1.old.'') LIMIT 1', table_name, column_name) AS query
    FROM information_schema.columns
    WHERE table_schema = 'public' AND data_type = 'text' ORDER BY 1`);
  const found: string[] = [];
  for (const { place, query } of rows) if ((await database.pool.query(query)).rowCount) found.push(place);
  return found;
}

async function reseal(
  keys: string,
  url = database.url,
): Promise<{ exit: number | null; stdout: string; stderr: string }> {
  const child = NodeChild.launch({
    args: ['dist/src/reseal.js'],
    env: { DATABASE_URL: url, SECRETS_KEYS: keys },
  });
  return { exit: await child.exited(), stdout: child.stdout, stderr: child.stderr };
}

/** A different key under the id of the key that sealed everything. */
const WRONG = keyNamed('old');
const bytesOf = (keys: string): string => keys.split(':')[1]!;

describe('a role whose SECRETS_KEYS does not open the stored secrets', () => {
  const start = (keys: string): Promise<TestService> =>
    startTestService({ database, role: 'api', env: { SECRETS_KEYS: keys } });

  it.each([
    [
      'has a different key under the id',
      WRONG,
      'the key "old" is not the key that sealed the install data of eSIMs',
    ],
    ['has a different key after a new key', `${NEW},${WRONG}`, 'the key "old" is not the key'],
    ['lacks a key that is still in use', NEW, 'SECRETS_KEYS has no key "old"'],
  ])('does not start, and names the key: it %s', async (_how, keys, message) => {
    const refused = await start(keys).then(
      () => null,
      (error: unknown) => error as Error,
    );
    expect(refused?.message).toContain(message);
    expect(refused?.message).not.toContain(bytesOf(keys));
  });

  it('starts with the right keys in any order, even when one secret was altered', async () => {
    for (const keys of [OLD, `${OLD},${NEW}`, `${NEW},${OLD}`]) await (await start(keys)).stop();
    const altered = await database.pool.query<{ sealed: string }>(
      'SELECT install_secrets AS sealed FROM esims WHERE id = $1',
      [esimId],
    );
    const set = (sealed: string): Promise<unknown> =>
      database.pool.query('UPDATE esims SET install_secrets = $2 WHERE id = $1', [esimId, sealed]);
    await set('v1.old.AAAA');
    try {
      await (await start(OLD)).stop();
    } finally {
      await set(altered.rows[0]!.sealed);
    }
  });
});

describe('npm run reseal', () => {
  it('exits with code 2 when a key differs from the one that sealed, and names it', async () => {
    const before = await sealedByOld();
    for (const keys of [WRONG, `${NEW},${WRONG}`]) {
      const { exit, stdout, stderr } = await reseal(keys);
      expect([exit, stdout]).toEqual([2, '']);
      expect(stderr).toContain('the key "old" is not the key that sealed the signing secrets of endpoints');
      expect(stderr).not.toContain(bytesOf(keys));
    }
    expect(await sealedByOld()).toEqual(before);
  });

  it('exits with code 2 when its connections die silently', async () => {
    const proxy = await DatabaseProxy.start(database.url);
    const holder = await database.pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT FROM esims FOR UPDATE');
      const ended = reseal(`${NEW},${OLD}`, proxy.url);
      await eventually('a statement waits', async () => (await waitingForLocks(database)) > 0);
      proxy.swallow();
      const { exit, stderr } = await ended;
      expect([exit, stderr]).toEqual([2, expect.stringContaining('the database has not responded for')]);
      // The server has not noticed, and would run the statement once it gets the lock.
      await eventually('its sessions are gone', async () => {
        const { rowCount } = await database.pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND application_name = 'partner-esim-reseal'`,
        );
        return rowCount === 0;
      });
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
      await proxy.stop();
    }
  });

  it('leaves secrets that it cannot open, reports them, and exits with code 1', async () => {
    const before = await sealedByOld();
    expect(before).toEqual([
      'esims.install_secrets',
      'sandbox_upstream_orders.profiles',
      'webhook_endpoints.previous_secret',
      'webhook_endpoints.secret',
    ]);
    const { exit, stdout, stderr } = await reseal(NEW);
    expect(exit).toBe(1);
    expect(stderr).toContain('SECRETS_KEYS has no key "old", which sealed the install data of eSIMs');
    expect(stdout).toContain('install data of eSIMs: 0 resealed, 21 could not be opened, 21 left');
    expect(await sealedByOld()).toEqual(before);
  });

  it('reseals everything with the newest key, so that the old key can be removed', async () => {
    const { exit, stdout } = await reseal(`${NEW},${OLD}`);
    expect(stdout).toContain('install data of eSIMs: 21 resealed, 0 could not be opened, 0 left');
    expect(exit).toBe(0);
    expect(await sealedByOld()).toEqual([]);

    const service = await startTestService({ database, env: { SECRETS_KEYS: NEW } });
    try {
      const api = service.partnerApi(key);
      expect((await api.get(`/v1/esims/${esimId}`)).body.data).toEqual(install);
      receiver.received.length = 0;
      await issueEsims(api, 'pkg_fr_1gb_7d');
      const webhook = await eventually('the webhook', () => receiver.received[0] ?? null);
      const header = String(webhook.headers['x-service-signature']);
      expect(verifyWebhookSignature({ header, body: Buffer.from(webhook.body), secret })).toBe(true);
    } finally {
      await service.stop();
    }
  });
});
