import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { callProvider, ProviderOutcomeUnknown } from '../../src/providers/index.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { type EsimAccessWorld, makeEsimAccessWorld, openTestDataSource } from './esim-access-world.js';
import { newOrder, newTopup, placeTopup, provision, recoverTopup } from './provider-world.js';

let database: TestDatabase;
let dataSource: DataSource;
let world: EsimAccessWorld;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await openTestDataSource(database.url);
});

afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

beforeEach(async () => {
  world = await makeEsimAccessWorld(dataSource);
});

afterEach(() => world.close());

/** The next call is answered with success, in a form that no contract knows, and has no effect. */
function claimSuccess(): void {
  world.simulator.control({ faults: { garbage: 1, garbageKind: 'wrong_types' } });
}

async function soldEsim() {
  const order = newOrder(world);
  const [profile] = (await provision(world.provider, order)).profiles;
  const { providerEsimId, iccid } = profile!;
  return { order, esim: { providerEsimId, iccid, issuedAt: new Date() } };
}

describe('eSIM Access: a success that is not the contract’s', () => {
  it('does not complete a top-up that it does not name; the top-up is then applied once', async () => {
    const { esim } = await soldEsim();
    const topup = newTopup(world, esim);
    claimSuccess();
    await expect(placeTopup(world.provider, topup)).rejects.toThrow(ProviderOutcomeUnknown);
    expect((await recoverTopup(world.provider, topup)).state).toBe('completed');
    expect(await world.sim.topupsOf(topup.reference)).toBe(1);
  });

  it('does not cancel an eSIM that still shows itself as new; the next try does', async () => {
    const { order, esim } = await soldEsim();
    const request = { reference: order.reference, quantity: 1, esims: [esim] };
    const cancel = () =>
      callProvider(world.provider, (signal) => world.provider.cancelOrder(request, signal));
    // The first call looks; the cancellation is the second.
    const { provider } = world;
    const api = (provider as unknown as { api: { exchange: (...args: unknown[]) => Promise<unknown> } }).api;
    const exchange = api.exchange.bind(api);
    api.exchange = (...args) => {
      if (args[0] === 'esim/cancel') claimSuccess();
      return exchange(...args);
    };
    await expect(cancel()).rejects.toThrow(ProviderOutcomeUnknown);
    expect(await world.sim.canceledOf(order.reference)).toBe(0);
    api.exchange = exchange;
    expect(await cancel()).toEqual({ state: 'canceled' });
    expect(await world.sim.canceledOf(order.reference)).toBe(1);
  });
});
