import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { migrateDatabase } from '../../src/apps/migration.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { dropDatabase, onDatabase } from '../harness/database.js';
import {
  eventually,
  openPool,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

/** Makes user names unique, because users belong to the whole server and other tests share it. */
const suffix = randomBytes(4).toString('hex');
const USERS = ['esim_owner', 'esim_worker', 'esim_service'] as const;
const password = randomBytes(12).toString('hex');
const script = readFileSync(path.join(PROJECT_ROOT, 'ops/database/users.sql'), 'utf8');

let receiver: TestReceiver;
const services: TestService[] = [];

const own = (text: string): string =>
  USERS.reduce((sql, user) => sql.replaceAll(user, `${user}_${suffix}`), text);

function urlOf(user: (typeof USERS)[number] | null): string {
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/users_${suffix}`;
  if (user) [url.username, url.password] = [own(user), password];
  return url.href;
}

beforeAll(async () => {
  receiver = await startReceiver();
  await onDatabase(inject('postgresUrl'), `CREATE DATABASE users_${suffix} TEMPLATE template0`);
  await onDatabase(urlOf(null), own(script));
  for (const user of USERS) await onDatabase(urlOf(null), own(`ALTER USER ${user} PASSWORD '${password}'`));
  await migrateDatabase(urlOf('esim_owner'));
});

afterAll(async () => {
  for (const service of services) await service.stop();
  await receiver.close();
  await dropDatabase(urlOf(null));
  for (const user of [...USERS].reverse()) await onDatabase(inject('postgresUrl'), own(`DROP ROLE ${user}`));
});

async function start(
  role: 'api' | 'admin' | 'portal' | 'worker',
  user: (typeof USERS)[number],
): Promise<TestService> {
  const pool = openPool(urlOf(user), 1);
  const database = { url: urlOf(user), pool, drop: () => pool.end() };
  const service = await startTestService({ role, database });
  services.push({ ...service, stop: () => service.stop().then(() => pool.end()) });
  return service;
}

it("runs API, admin API and portal with row privileges, and the worker with the owner's privileges", async () => {
  const admin = await start('admin', 'esim_service');
  const api = await start('api', 'esim_service');
  await start('portal', 'esim_service');
  await start('worker', 'esim_worker');
  const partner = await admin.createPartner();
  const endpoint = { mode: 'sandbox', url: receiver.url };
  expect(
    (await admin.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, endpoint)).status,
  ).toBe(201);
  const partnerApi = api.partnerApi(partner.sandboxKey);
  const { id } = await placeOrder(partnerApi, { package_id: 'pkg_fr_1gb_7d' });
  expect(await orderEnded(partnerApi, id as string)).toMatchObject({ status: 'issued' });
  await eventually('the webhook arrives', async () => Promise.resolve(receiver.received.length === 1));
  expect((await partnerApi.get('/v1/events')).body.data).toHaveLength(1);
  const wallet = `/internal/v1/partners/${partner.id}/wallet/deposits`;
  const deposit = { amount: { amount: 100, currency: 'USD' }, reference: 'first' };
  expect((await admin.admin.post(wallet, deposit)).status).toBe(201);
});

it.each([
  'CREATE TABLE mine (id int)',
  'DROP TABLE ledger_entries',
  'ALTER TABLE ledger_entries DISABLE TRIGGER ALL',
  'TRUNCATE ledger_entries',
  `SET role = 'esim_owner'`,
])("denies the API's user: %s", async (statement) => {
  const client = new Client({ connectionString: urlOf('esim_service') });
  await client.connect();
  try {
    await expect(client.query(own(statement))).rejects.toMatchObject({ code: '42501' });
  } finally {
    await client.end();
  }
});

it('lets the worker create objects that belong to the owner', async () => {
  const client = new Client({ connectionString: urlOf('esim_worker') });
  await client.connect();
  try {
    await client.query('CREATE TABLE by_worker (id int)');
    const { rows } = await client.query(`SELECT tableowner FROM pg_tables WHERE tablename = 'by_worker'`);
    expect(rows).toEqual([{ tableowner: own('esim_owner') }]);
  } finally {
    await client.end();
  }
});
