import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EsimDevice } from '../harness/esim-device.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';

let service: TestService;
let partners: TestPartner[];

beforeAll(async () => {
  service = await startTestService();
  partners = [await service.createPartner('First'), await service.createPartner('Second')];
  for (const { sandbox } of partners) await useEverything(sandbox);
});

afterAll(() => service.stop());

/** Creates an order, its eSIM, a top-up and their events. */
async function useEverything(api: TestPartner['sandbox']): Promise<void> {
  const esimId = await issueEsim(api, 'pkg_fr_1gb_7d');
  const packages = (await api.get(`/v1/esims/${esimId}/topup-packages`)).body.data as Json[];
  const request = { esim_id: esimId, package_id: packages[0]!['id'] as string };
  expect((await api.post('/v1/topups', request)).status).toBe(202);
  await new EsimDevice(api).played(esimId, 'activate');
  await eventually('the top-up is there', async () => {
    const { data } = (await api.get('/v1/topups')).body;
    return data[0]?.status === 'completed';
  });
}

describe.each(['orders', 'esims', 'topups', 'events'])('the list of a partner’s %s for support', (list) => {
  it('contains everything that belongs to that partner and nothing that belongs to another', async () => {
    for (const { id } of partners) {
      const seen = await service.admin.get(`/internal/v1/partners/${id}/${list}?limit=100`);
      expect(seen.status, seen.text).toBe(200);
      const ids = (seen.body.data as Json[]).map(idOf);
      const { rows } = await service.database.pool.query<{ id: string }>(
        `SELECT id FROM ${list} WHERE partner_id = $1`,
        [id],
      );
      const own = rows.map((row) => row.id);
      expect(own.length).toBeGreaterThan(0);
      expect(ids.toSorted()).toEqual(own.toSorted());
    }
  });
});

function idOf(item: Json): string {
  return (item['id'] ?? item['esim_id']) as string;
}
