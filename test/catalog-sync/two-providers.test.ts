import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import {
  createTestDatabase,
  eventually,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { topupsKnown } from '../harness/known-topups.js';
import { EsimAccessUpstream } from '../live/esim-access-upstream.js';
import { buy, type Buyer, esimIdsOf, FAST, settled, topUp } from '../live/shop.js';
import { ZenditUpstream } from '../live/zendit-upstream.js';

const ZENDIT_IN_GERMANY = 'pkg_z_ESIM-DE-7D-1GB';
const ZENDIT_IN_FRANCE = 'pkg_z_ESIM-FR-7D-1GB';
const OF_THE_UNITED_STATES = 'pkg_a_PUS1D7';

let esimAccess: EsimAccessUpstream;
let zendit: ZenditUpstream;
let database: TestDatabase;
let service: TestService;
let partnerId: string;
let key: string;

/** The whole service, connected to both simulators over HTTP. */
async function start(rules: string): Promise<TestService> {
  const upstreams = { ...esimAccess.settings(esimAccess.url), ...zendit.settings(zendit.url) };
  return startTestService({ database, env: { ...FAST, ...upstreams, LIVE_PACKAGE_PROVIDERS: rules } });
}

beforeAll(async () => {
  [esimAccess, zendit] = [await EsimAccessUpstream.start(), await ZenditUpstream.start()];
  database = await createTestDatabase();
  service = await start('');
  partnerId = (await service.createPartner()).id;
  key = await service.createKey(partnerId, 'live');
  const money = { amount: { amount: 10_000, currency: 'USD' }, reference: 'first-deposit' };
  const paid = await service.admin.post(`/internal/v1/partners/${partnerId}/wallet/deposits`, money);
  expect(paid.status, paid.text).toBe(201);
  await eventually('the catalog is synchronized', async () => {
    const { rowCount } = await database.pool.query('SELECT 1 FROM catalog_syncs WHERE ended_at IS NOT NULL');
    return rowCount! > 0;
  });
  await topupsKnown(database);
});

afterAll(async () => {
  await service.stop();
  await database.drop();
  await Promise.all([esimAccess.close(), zendit.close()]);
});

describe('rules that select the provider', () => {
  it('apply from startup: orders follow the rules, and eSIMs that were already sold can be topped up', async () => {
    const [esimId] = esimIdsOf(await buy(buyer(), esimAccess.packageId));
    await service.stop();
    service = await start(`DE=zendit,${OF_THE_UNITED_STATES}=none,*=esim_access`);
    await eventually('the rules hold', async () => {
      const given = await Promise.all([ZENDIT_IN_GERMANY, 'pkg_a_PJP1D7'].map(sells));
      const taken = await Promise.all(
        [esimAccess.packageId, ZENDIT_IN_FRANCE, OF_THE_UNITED_STATES].map(sells),
      );
      return given.every(Boolean) && !taken.some(Boolean);
    });

    const { api } = buyer();
    const refused = await api.post('/v1/orders', { package_id: esimAccess.packageId });
    expectProblem(refused, 409, 'package_unavailable');
    const done = await buy(buyer(), ZENDIT_IN_GERMANY);
    expect(done).toMatchObject({ status: 'issued', package_id: ZENDIT_IN_GERMANY });
    expect(zendit.account(await referenceOf('orders', done['id'] as string))).toMatchObject({ bought: 1 });

    const listed = await api.get(`/v1/esims/${esimId}/topup-packages`);
    expect(listed.body.data.map(({ id }: { id: string }) => id)).toContain(esimAccess.topupPackageId);
    const topped = await settled(buyer(), await topUp(buyer(), esimId!, esimAccess.topupPackageId));
    expect(topped).toMatchObject({ status: 'completed' });
    expect(esimAccess.topupsOf(await referenceOf('topups', topped['id'] as string))).toBe(1);
  });
});

function buyer(): Buyer {
  return { id: partnerId, api: service.partnerApi(key) };
}

/** Whether the partner API offers the package as available. */
async function sells(packageId: string): Promise<boolean> {
  const answer = await buyer().api.get(`/v1/catalog/${packageId}`);
  // The wholesaler's list may not have been read yet.
  return answer.status === 200 && (answer.body.data.available as boolean);
}

async function referenceOf(table: 'orders' | 'topups', id: string): Promise<string> {
  const { rows } = await database.pool.query<{ provider_reference: string }>(
    `SELECT provider_reference FROM ${table} WHERE id = $1`,
    [id],
  );
  return rows[0]!.provider_reference;
}
