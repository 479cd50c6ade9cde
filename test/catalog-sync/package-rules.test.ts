import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CatalogBench, type SyncWorker } from './catalog-bench.js';
import { offer, offers } from './scripted-provider.js';

let bench: CatalogBench;

beforeAll(async () => {
  bench = await CatalogBench.open();
});

afterEach(() => bench.startAfresh());

afterAll(() => bench.close());

/** A worker with these rules, as after a restart: what they change, it changes at once. */
async function restart(rules: string): Promise<SyncWorker> {
  const worker = await bench.startWorker({ LIVE_PACKAGE_PROVIDERS: rules });
  expect(await worker.runIfDue(), 'the new rules are noticed').toBe(true);
  return worker;
}

describe('LIVE_PACKAGE_PROVIDERS', () => {
  it('says who sells a package: the first rule that matches, for base packages of exactly one country', async () => {
    bench.esimAccess.packages = [
      offer('FR-1'),
      offer('FR-2'),
      offer('FR-T', { kind: 'topup' }),
      offer('DE-1', { coverage: ['DE'] }),
      offer('EU-1', { coverage: ['DE', 'FR'] }),
    ];
    bench.zendit.packages = [
      offer('FR-1'),
      offer('DE-1', { coverage: ['DE'] }),
      offer('EU-1', { coverage: ['DE', 'FR'] }),
    ];
    const everything = [
      ...['pkg_a_DE-1', 'pkg_a_EU-1', 'pkg_a_FR-1', 'pkg_a_FR-2', 'pkg_a_topup_FR-T'],
      ...['pkg_z_DE-1', 'pkg_z_EU-1', 'pkg_z_FR-1'],
    ];
    await restart('');
    expect(await bench.available()).toEqual(everything);
    await restart('FR=zendit');
    expect(await bench.available()).toEqual(
      everything.filter((id) => !['pkg_a_FR-1', 'pkg_a_FR-2'].includes(id)),
    );
    const before = await bench.now();
    await restart('pkg_a_FR-2=esim_access,FR=zendit,pkg_z_DE-1=none,*=esim_access');
    expect(await bench.available()).toEqual([
      'pkg_a_DE-1',
      'pkg_a_EU-1',
      'pkg_a_FR-2',
      'pkg_a_topup_FR-T',
      'pkg_z_FR-1',
    ]);
    await bench.package('pkg_z_DE-1', ({ available }) => available === false);
    expect((await bench.updatedSince(before)).sort()).toEqual([
      ['pkg_a_FR-2', 120, true],
      ['pkg_z_DE-1', 120, false],
      ['pkg_z_EU-1', 120, false],
    ]);
    await restart('*=none');
    expect(await bench.available()).toEqual(['pkg_a_topup_FR-T']);
    await restart('');
    expect(await bench.available()).toEqual(everything);
    expect((await bench.history('pkg_z_DE-1')).map(([, , available]) => available)).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('that gives up more than half of a list does not look like a list that shrank', async () => {
    bench.esimAccess.packages = [...offers('FR', 20), ...offers('DE', 14, { coverage: ['DE'] })];
    await restart('');
    await restart('FR=none');
    expect(await bench.newest()).toMatchObject({
      status: 'completed',
      result: { esim_access: { listed: 34, changed: 0, withdrawn: 20 } },
    });
    expect(await bench.available()).toHaveLength(14);
  });

  it('leaves a list that shrank unbelieved: what nobody may sell does not stand in for what is sold', async () => {
    bench.esimAccess.packages = [...offers('FR', 40), ...offers('DE', 40, { coverage: ['DE'] })];
    const worker = await restart('FR=none');
    expect(await bench.available()).toHaveLength(40);
    bench.esimAccess.packages = bench.esimAccess.packages.slice(0, 40 + 19);
    expect((await bench.sync(worker)).result['esim_access']).toEqual({ error: 'catalog_shrank' });
    expect(await bench.available()).toHaveLength(40);
  });

  it('takes effect also on what a provider sells whose list cannot be had', async () => {
    bench.esimAccess.packages = [offer('FR-1'), offer('DE-1', { coverage: ['DE'] })];
    bench.zendit.packages = [offer('FR-1')];
    await restart('');
    const version = await bench.version();
    bench.esimAccess.error = new Error('503');
    await restart('FR=zendit');
    expect((await bench.newest()).result['esim_access']).toEqual({ error: 'provider_unavailable' });
    expect(await bench.available()).toEqual(['pkg_a_DE-1', 'pkg_z_FR-1']);
    expect(await bench.version(), 'partners are told').toBeGreaterThan(version);
    expect((await bench.history('pkg_a_FR-1')).at(-1)).toEqual([1_000_000, 120, false]);
  });
});
