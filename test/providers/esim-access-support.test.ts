import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { type EsimAccessWorld, makeEsimAccessWorld, openTestDataSource } from './esim-access-world.js';
import { cancelable, findParts, findCancelStatuses } from './support-conformance.js';
import { newOrder, place, provision } from './provider-world.js';

let database: TestDatabase;
let dataSource: DataSource;
beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await openTestDataSource(database.url);
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

describe('orders at eSIM Access that support looks at', () => {
  let world: EsimAccessWorld;
  beforeEach(async () => {
    world = await makeEsimAccessWorld(dataSource);
  });
  afterEach(() => world.close());

  it('are shown to support as running while they are allocated, and without what was revoked or is ill-formed', async () => {
    const order = newOrder(world, 3);
    world.simulator.control({ faults: { allocatingLooks: 2 } });
    await place(world.provider, order);
    expect(await findParts(world.provider, order)).toMatchObject({ profiles: [], running: 3, unusable: 0 });
    const { profiles } = await provision(world.provider, order);
    const [revoked, broken, kept] = profiles.map(({ providerEsimId: esimTranNo }) => esimTranNo);
    world.simulator.control({ esim: { esimTranNo: revoked!, esimStatus: 'REVOKE' } });
    world.simulator.control({ esim: { esimTranNo: broken!, matchingId: '?' } });
    expect(await findParts(world.provider, order)).toMatchObject({
      profiles: [{ providerEsimId: kept }],
      running: 0,
      unusable: 1,
      failure: { code: 'provider_rejected' },
    });
    world.simulator.control({ esim: { esimTranNo: kept!, esimStatus: 'TELEPORTED' } });
    expect(await findParts(world.provider, order)).toMatchObject({ profiles: [], running: 1 });
  });

  it.each([
    ['IN_USE', 'ENABLED', 'in_use'],
    ['GOT_RESOURCE', 'DOWNLOAD', 'in_use'],
    ['USED_EXPIRED', 'DELETED', 'in_use'],
    ['UNUSED_EXPIRED', 'RELEASED', 'unused'],
    ['REVOKE', 'RELEASED', 'canceled'],
    ['TELEPORTED', 'RELEASED', 'unknown'],
  ])('tell support that an eSIM which is %s and %s is %s', async (esimStatus, smdpStatus, cancelStatus) => {
    const request = await cancelable(world.provider, newOrder(world));
    const { providerEsimId } = request.esims[0]!;
    world.simulator.control({ esim: { esimTranNo: providerEsimId, esimStatus, smdpStatus } });
    expect(await findCancelStatuses(world.provider, request)).toEqual([{ providerEsimId, cancelStatus }]);
  });

  it('are running as a whole while the provider says that it still allocates them', async () => {
    const order = newOrder(world, 2);
    await provision(world.provider, order);
    world.simulator.control({
      faults: { refuse: { path: 'esim/query', code: '200010', count: 1, after: 0 } },
    });
    expect(await findParts(world.anotherProvider(), order)).toEqual({
      profiles: [],
      running: 2,
      unusable: 0,
      failure: null,
    });
  });

  it('are running while they are allocated, whatever then stands for their ICCIDs', async () => {
    const order = newOrder(world, 2);
    const [made, done] = (await provision(world.provider, order)).profiles;
    const { providerEsimId: esimTranNo } = made!;
    world.simulator.control({ esim: { esimTranNo, esimStatus: 'GETTING_RESOURCE', iccid: '0' } });
    expect(await findParts(world.provider, order)).toMatchObject({
      profiles: [{ providerEsimId: done!.providerEsimId }],
      running: 1,
      unusable: 0,
    });
  });
});
