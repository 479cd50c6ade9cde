import { describe, expect, it } from 'vitest';
import type { ProviderUsageReport, ProviderEsimRef } from '../../src/providers/index.js';
import { newOrder, newReference, signal, ZenditSuite } from './zendit-suite.js';
import { TOPUP } from './zendit-world.js';

const DAY_MS = 86_400_000;

describe("Zendit's data about eSIMs", () => {
  const suite = ZenditSuite.use();

  describe('a reading', () => {
    async function issue(offerId = 'ESIM-FR-7D-1GB'): Promise<ProviderEsimRef> {
      const [profile] = await suite.provision(newOrder(1, { upstreamPackageId: offerId, unitCost: null }));
      return { providerEsimId: profile!.providerEsimId, iccid: profile!.iccid, issuedAt: new Date() };
    }

    async function read(esim: ProviderEsimRef): Promise<ProviderUsageReport | undefined> {
      return (await suite.provider.fetchUsage([esim], signal))[0];
    }

    it('contains the usage of an active eSIM to the byte, at the time of the call', async () => {
      const esim = await issue('ESIM-PT-1D-0.1GB');
      const startAt = new Date(Date.now() - 3_600_000);
      const plan = {
        usedGB: 0.033333,
        startAt: startAt.toISOString(),
        firstInstalledAt: startAt.toISOString(),
      };
      suite.simulator.control({ plans: { [esim.iccid]: plan } });
      const before = new Date();
      const reading = await read(esim);
      expect(reading).toMatchObject({
        providerEsimId: esim.providerEsimId,
        status: 'active',
        profileStatus: 'installed',
        usedBytes: 33_333_000,
        totalBytes: 100_000_000,
        activatedAt: startAt,
        expiresAt: new Date(startAt.getTime() + DAY_MS),
      });
      expect(reading!.asOf.getTime()).toBeGreaterThanOrEqual(before.getTime());
    });

    it('distinguishes issued, depleted and expired', async () => {
      const esim = await issue();
      expect(await read(esim)).toMatchObject({ status: 'issued', profileStatus: 'unknown', expiresAt: null });
      const startAt = new Date(Date.now() - DAY_MS).toISOString();
      suite.simulator.control({ plans: { [esim.iccid]: { usedGB: 1, startAt } } });
      expect(await read(esim)).toMatchObject({ status: 'depleted', usedBytes: 1e9, totalBytes: 1e9 });
      const endAt = new Date(Date.now() - 1_000).toISOString();
      suite.simulator.control({ plans: { [esim.iccid]: { usedGB: 0.5, startAt, endAt } } });
      const bought = { ...esim, issuedAt: new Date(Date.now() - 2 * DAY_MS) };
      expect(await read(bought)).toMatchObject({ status: 'expired', usedBytes: 5e8 });
      suite.simulator.control({ plans: { [esim.iccid]: { gone: true } } });
      expect(await read(esim)).toMatchObject({ status: 'issued', usedBytes: null, totalBytes: null });
    });

    it('counts no bytes for an unlimited plan', async () => {
      const esim = await issue('ESIM-FR-10D-UNLIMITED');
      suite.simulator.control({ plans: { [esim.iccid]: { startAt: new Date().toISOString() } } });
      expect(await read(esim)).toMatchObject({ status: 'active', usedBytes: null, totalBytes: null });
    });

    it('includes a top-up that waits behind a used-up plan, without an end until it starts', async () => {
      const esim = await issue();
      const topup = {
        reference: newReference(),
        esim,
        packageId: 'pkg_any',
        acceptedAt: new Date(),
        ...TOPUP,
      };
      await suite.provider.placeTopup(topup, 'first', signal);
      await suite.provider.findTopup(topup, signal);
      suite.simulator.control({ plans: { [esim.iccid]: { usedGB: 1, startAt: new Date().toISOString() } } });
      expect(await read(esim)).toMatchObject({
        status: 'active',
        usedBytes: 1e9,
        totalBytes: 6e9,
        expiresAt: null,
      });
    });

    it('skips an eSIM with unreadable plans, includes the others, and logs it', async () => {
      const [before, broken, after] = [await issue(), await issue(), await issue()];
      const startAt = new Date(Date.now() - 3_600_000).toISOString();
      const ofOthers = { usedGB: 0.5, startAt };
      suite.simulator.control({
        plans: {
          [before.iccid]: ofOthers,
          [broken.iccid]: { startAt, endAt: 'next week' },
          [after.iccid]: ofOthers,
        },
      });
      const readings = await suite.provider.fetchUsage([before, broken, after], signal);
      expect(readings.map((reading) => reading.providerEsimId)).toEqual([
        before.providerEsimId,
        after.providerEsimId,
      ]);
      for (const reading of readings) expect(reading).toMatchObject({ status: 'active', usedBytes: 5e8 });
      expect(suite.bench.log.lines).toContainEqual({
        event: 'provider.reading_skipped',
        provider: 'zendit',
        providerEsimId: broken.providerEsimId,
        path: 'endAt',
        status: null,
      });
    });

    it.each([
      [
        'negative remaining data',
        { remainingDataGB: -0.003 },
        { status: 'depleted', usedBytes: 1e9, totalBytes: 1e9 },
      ],
      [
        'figures as text',
        { initialDataGB: '1', remainingDataGB: '0.25' },
        { usedBytes: 75e7, totalBytes: 1e9 },
      ],
      [
        'more remaining data than the total',
        { remainingDataGB: 1.5 },
        { status: 'active', usedBytes: 0, totalBytes: 1e9 },
      ],
      [
        'text that is not a number',
        { remainingDataGB: 'NaN' },
        { status: 'active', usedBytes: null, totalBytes: null },
      ],
      ['no remaining data field', { remainingDataGB: null }, { status: 'active', usedBytes: null }],
      [
        'no total',
        { initialDataGB: null, remainingDataGB: 0.5 },
        { status: 'active', usedBytes: null, totalBytes: null },
      ],
      [
        'neither a total nor remaining data',
        { initialDataGB: null, remainingDataGB: 0 },
        { status: 'active', usedBytes: null },
      ],
      [
        'a negative total',
        { initialDataGB: -1, remainingDataGB: 0.5 },
        { status: 'active', totalBytes: null },
      ],
      [
        'an overflowing total',
        { initialDataGB: 1e300 },
        { status: 'active', usedBytes: null, totalBytes: null },
      ],
      ['almost nothing left', { remainingDataGB: 1e-7 }, { status: 'active', usedBytes: 999_999_900 }],
    ])('is correct with %s', async (_what, figures, wanted) => {
      const esim = await issue();
      const startAt = new Date(Date.now() - DAY_MS).toISOString();
      suite.simulator.control({ plans: { [esim.iccid]: { usedGB: 0.5, startAt, figures } } });
      expect(await read(esim)).toMatchObject({ providerEsimId: esim.providerEsimId, ...wanted });
    });

    it('ignores the ended plan of an earlier owner of the ICCID', async () => {
      const esim = await issue();
      const plan = { usedGB: 1, startAt: '2026-01-01T00:00:00Z', endAt: '2026-01-08T00:00:00Z' };
      suite.simulator.control({ plans: { [esim.iccid]: plan } });
      expect(await read(esim)).toMatchObject({ status: 'issued', usedBytes: null, activatedAt: null });
    });
  });
});
