import { describe, expect, it } from 'vitest';
import { judgeTopup } from '../../src/providers/esim-access/topup-placement.js';
import type { QueriedEsim, QueriedPackage } from '../../src/providers/esim-access/queried-esim.js';
import type { EsimPurchases, ProviderTopupRequest } from '../../src/providers/index.js';

const GB = 1_000_000_000;
const ACCEPTED_AT = new Date('2026-11-22T12:00:00Z');
const at = (secondsAfterAcceptance: number) =>
  new Date(ACCEPTED_AT.getTime() + secondsAfterAcceptance * 1_000);

const BASE: QueriedPackage = {
  transactionId: 'po_order',
  packageCode: 'PDE1D7',
  volume: GB,
  createdAt: at(-3_600),
};
const OURS: QueriedPackage = {
  transactionId: 'pt_ours',
  packageCode: 'TOPUP_PDE1D7',
  volume: GB,
  createdAt: at(2),
};
const EARLIER: QueriedPackage = { ...OURS, transactionId: 'pt_earlier', createdAt: at(-600) };
const settled = { reference: 'pt_earlier', upstreamPackageId: 'TOPUP_PDE1D7', dataBytes: GB };

const ONLY_THE_ORDER: EsimPurchases = {
  orderReference: 'po_order',
  basePackageId: 'PDE1D7',
  baseBytes: GB,
  topups: [],
  doubtful: 0,
};
const WITH_EARLIER: EsimPurchases = { ...ONLY_THE_ORDER, topups: [settled] };

function judge(
  packages: readonly QueriedPackage[] | null,
  others: EsimPurchases = ONLY_THE_ORDER,
  esim: Partial<QueriedEsim> = {},
  days: number | null = null,
) {
  const totalVolume = packages?.reduce((sum, { volume }) => sum + (volume ?? 0), 0) ?? null;
  const topup = {
    reference: 'pt_ours',
    upstreamPackageId: 'TOPUP_PDE1D7',
    days,
    acceptedAt: ACCEPTED_AT,
  } as ProviderTopupRequest;
  return judgeTopup(topup, { totalVolume, ...esim, packages } as QueriedEsim, others);
}

describe('a completed top-up', () => {
  it.each<[string, QueriedPackage[], EsimPurchases?]>([
    ['under its own reference', [BASE, OURS]],
    ['under its own reference, whatever else is uncertain', [BASE, OURS], { ...ONLY_THE_ORDER, doubtful: 3 }],
    ['under another reference, as the only unexplained package', [BASE, { ...OURS, transactionId: 'x' }]],
    ['without a reference', [BASE, { ...OURS, transactionId: null }]],
    ['under the reference of the order', [BASE, { ...OURS, transactionId: 'po_order' }]],
    ['under the code of the base package', [BASE, { ...OURS, transactionId: null, packageCode: 'PDE1D7' }]],
    ['in a list with the newest first', [{ ...OURS, transactionId: null }, EARLIER, BASE], WITH_EARLIER],
    [
      'next to an earlier one that also has no reference',
      [{ ...OURS, transactionId: null }, { ...EARLIER, transactionId: null }, BASE],
      WITH_EARLIER,
    ],
  ])('is found %s', (_name, packages, others) => {
    expect(judge(packages, others)).toBe('present');
  });
});

describe('a missing top-up', () => {
  it('is reported as absent where the eSIM has exactly the bought packages', () => {
    expect(judge([BASE])).toBe('absent');
    expect(judge([BASE, EARLIER], WITH_EARLIER)).toBe('absent');
    expect(judge([BASE, { ...EARLIER, transactionId: null }], WITH_EARLIER)).toBe('absent');
  });
});

describe('an uncertain top-up', () => {
  it.each<[string, QueriedPackage[] | null, EsimPurchases?, Partial<QueriedEsim>?]>([
    ['without a list', null],
    ['with an empty list', []],
    ['without the base package', [{ ...EARLIER }], WITH_EARLIER],
    ['with more volume than was bought', [BASE], ONLY_THE_ORDER, { totalVolume: 2 * GB }],
    ['with volume that was added to the base package itself', [{ ...BASE, volume: 2 * GB }]],
    ['without a volume', [BASE], ONLY_THE_ORDER, { totalVolume: null }],
    [
      'when the volume of the base package is unknown',
      [{ ...BASE, volume: null }],
      { ...ONLY_THE_ORDER, baseBytes: null },
      { totalVolume: GB },
    ],
    ['when the base package is newer than the top-up', [{ ...BASE, createdAt: at(2) }]],
    ['when a settled top-up is missing', [BASE], WITH_EARLIER],
    [
      'with two unexplained packages',
      [BASE, { ...OURS, transactionId: 'x' }, { ...OURS, transactionId: 'y' }],
    ],
    [
      'alongside another uncertain one',
      [BASE, { ...OURS, transactionId: 'x' }],
      { ...ONLY_THE_ORDER, doubtful: 1 },
    ],
    ['with a package of another kind', [BASE, { ...OURS, transactionId: 'x', packageCode: 'TOPUP_PFR1D7' }]],
    ['with an older package', [BASE, { ...OURS, transactionId: 'x', createdAt: at(-600) }]],
    [
      'with a second package under the reference of a settled one',
      [BASE, EARLIER, { ...OURS, transactionId: 'pt_earlier' }],
      WITH_EARLIER,
    ],
  ])('remains doubtful %s', (_name, packages, others, esim) => {
    expect(judge(packages, others, esim)).toBe('doubtful');
  });

  it('remains doubtful for days of a pass, whose volume may not grow', () => {
    expect(judge([BASE], ONLY_THE_ORDER, { totalVolume: GB }, 3)).toBe('doubtful');
  });
});
