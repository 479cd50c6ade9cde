import { describe, expect, it } from 'vitest';
import { type KnownEsim, type ProviderEsimRef, ProviderUnavailable } from '../../src/providers/index.js';
import { newOrder, signal, ZenditSuite } from './zendit-suite.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const GB = 1_000_000_000;

function ago(ms: number): Date {
  return new Date(Date.now() - ms);
}

/** In use since yesterday, nearly used up, and last seen with its plan. */
const IN_USE: KnownEsim = {
  activatedAt: ago(24 * HOUR_MS),
  expiresAt: ago(-24 * HOUR_MS),
  toppedUpAt: null,
  usedBytes: 0.9 * GB,
  totalBytes: GB,
  lookedInVainAt: null,
};
const IN_VAIN = { lookedInVainAt: ago(HOUR_MS) };

describe('Zendit with a list of active and queued plans only', () => {
  const suite = ZenditSuite.use();

  async function issue(known: Partial<KnownEsim> = {}): Promise<ProviderEsimRef> {
    const [profile] = await suite.provision(newOrder());
    const { providerEsimId, iccid } = profile!;
    return { providerEsimId, iccid, issuedAt: ago(48 * HOUR_MS), known: { ...IN_USE, ...known } };
  }

  it.each<[string, Partial<KnownEsim>, string]>([
    ['not before its first use, because reads may lag', { activatedAt: null, ...IN_VAIN }, 'issued'],
    ['as expired once its validity is over', { expiresAt: ago(1_000) }, 'expired'],
    ['as depleted when the plan is missing a second time', IN_VAIN, 'depleted'],
    ['as depleted at once when everything was used before', { usedBytes: GB }, 'depleted'],
    ['not when the plan is missing for the first time', {}, 'unread'],
    ['not when the second check comes too soon', { lookedInVainAt: ago(MINUTE_MS) }, 'unread'],
    ['not while a new top-up may not be listed yet', { ...IN_VAIN, toppedUpAt: ago(MINUTE_MS) }, 'unread'],
    ['not before its expiry when it is unlimited', { ...IN_VAIN, totalBytes: null }, 'unread'],
    ['not when it never used data', { ...IN_VAIN, usedBytes: 0 }, 'unread'],
  ])('ends an eSIM that has no plan left: %s', async (_what, known, status) => {
    const esim = await issue(known);
    suite.simulator.control({ plans: { [esim.iccid]: { gone: true } } });
    const [reading] = await suite.provider.fetchUsage([esim], signal);
    expect(reading?.status ?? 'unread').toBe(status);
  });

  it('detects the end of a plan that leaves the list with its last byte', async () => {
    const esim = await issue(IN_VAIN);
    const startAt = ago(HOUR_MS).toISOString();
    suite.simulator.control({ endedPlansLeave: true, plans: { [esim.iccid]: { usedGB: 0.9, startAt } } });
    expect(await suite.provider.fetchUsage([esim], signal)).toMatchObject([{ status: 'active' }]);
    suite.simulator.control({ plans: { [esim.iccid]: { usedGB: 1, startAt } } });
    expect(await suite.provider.fetchUsage([esim], signal)).toMatchObject([{ status: 'depleted' }]);
  });
});

describe('Zendit queried for the plans of several eSIMs', () => {
  const suite = ZenditSuite.use();

  async function issue(quantity: number): Promise<readonly ProviderEsimRef[]> {
    const profiles = await suite.provision(newOrder(quantity));
    return profiles.map(({ providerEsimId, iccid }) => ({ providerEsimId, iccid, issuedAt: new Date() }));
  }

  it.each([400, 404, 500, 'illFormed'] as const)(
    'keeps the readings of the others when one query returns %s',
    async (answer) => {
      const [before, broken, after] = await issue(3);
      suite.simulator.control({ plans: { [broken!.iccid]: { answer } } });
      const readings = await suite.provider.fetchUsage([before!, broken!, after!], signal);
      expect(readings.map(({ providerEsimId }) => providerEsimId)).toEqual([
        before!.providerEsimId,
        after!.providerEsimId,
      ]);
      expect(await suite.provider.fetchUsage([broken!], signal)).toEqual([]);
    },
  );

  it('counts as unavailable when three queries in a row fail, and keeps the earlier readings', async () => {
    const esims = await issue(4);
    const [first, ...broken] = esims;
    suite.simulator.control({
      plans: Object.fromEntries(broken.map(({ iccid }) => [iccid, { answer: 500 as const }])),
    });
    await expect(suite.provider.fetchUsage(broken, signal)).rejects.toBeInstanceOf(ProviderUnavailable);
    expect(await suite.provider.fetchUsage(esims, signal)).toMatchObject([
      { providerEsimId: first!.providerEsimId },
    ]);
  });

  it('counts as unavailable when it returns 503 for any eSIM', async () => {
    const [esim] = await issue(1);
    suite.simulator.control({ unavailable: 1 });
    await expect(suite.provider.fetchUsage([esim!], signal)).rejects.toBeInstanceOf(ProviderUnavailable);
  });
});
