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
} from '../../harness/index.js';
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

/** Places of text in any table that the key `old` sealed: a sealed column that the command does not know is found too. */
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

async function reseal(keys: string): Promise<{ exit: number | null; stdout: string }> {
  const child = NodeChild.launch({
    args: ['dist/roles/reseal.js'],
    env: { DATABASE_URL: database.url, SECRETS_KEYS: keys },
  });
  return { exit: await child.exited(), stdout: child.stdout };
}

describe('npm run reseal', () => {
  it('leaves what it cannot open as it is, and says so with exit code 1', async () => {
    const before = await sealedByOld();
    expect(before).toEqual([
      'esims.install_secrets',
      'sandbox_upstream_orders.profiles',
      'webhook_endpoints.previous_secret',
      'webhook_endpoints.secret',
    ]);
    const { exit, stdout } = await reseal(NEW);
    expect(exit).toBe(1);
    expect(stdout).toContain('install data of eSIMs: 0 sealed again, 21 could not be opened, 21 left');
    expect(await sealedByOld()).toEqual(before);
  });

  it('seals everything with the newest key: the old one can go, and nothing that it sealed is lost', async () => {
    const { exit, stdout } = await reseal(`${NEW},${OLD}`);
    expect(stdout).toContain('install data of eSIMs: 21 sealed again, 0 could not be opened, 0 left');
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
