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
) {
  const totalVolume = packages?.reduce((sum, { volume }) => sum + (volume ?? 0), 0) ?? null;
  const topup = {
    reference: 'pt_ours',
    upstreamPackageId: 'TOPUP_PDE1D7',
    acceptedAt: ACCEPTED_AT,
  } as ProviderTopupRequest;
  return judgeTopup(topup, { totalVolume, unlimited: false, ...esim, packages } as QueriedEsim, others);
}

describe('a top-up is present', () => {
  it.each<[string, QueriedPackage[], EsimPurchases?]>([
    ['under its own name', [BASE, OURS]],
    ['under its own name, whatever else is doubtful', [BASE, OURS], { ...ONLY_THE_ORDER, doubtful: 3 }],
    [
      'under another name, as the one package that nothing accounts for',
      [BASE, { ...OURS, transactionId: 'x' }],
    ],
    ['under no name', [BASE, { ...OURS, transactionId: null }]],
    ['under the name of the order', [BASE, { ...OURS, transactionId: 'po_order' }]],
    ['under the code of the base package', [BASE, { ...OURS, transactionId: null, packageCode: 'PDE1D7' }]],
    [
      'in a list that begins with the newest',
      [{ ...OURS, transactionId: null }, EARLIER, BASE],
      WITH_EARLIER,
    ],
    [
      'beside an earlier one that has lost its name, too',
      [{ ...OURS, transactionId: null }, { ...EARLIER, transactionId: null }, BASE],
      WITH_EARLIER,
    ],
  ])('%s', (_name, packages, others) => {
    expect(judge(packages, others)).toBe('present');
  });
});

describe('a top-up is absent', () => {
  it('where the eSIM has exactly the bought packages', () => {
    expect(judge([BASE])).toBe('absent');
    expect(judge([BASE, EARLIER], WITH_EARLIER)).toBe('absent');
    expect(judge([BASE, { ...EARLIER, transactionId: null }], WITH_EARLIER)).toBe('absent');
  });
});

describe('a top-up is in doubt', () => {
  it.each<[string, QueriedPackage[] | null, EsimPurchases?, Partial<QueriedEsim>?]>([
    ['without a list', null],
    ['with an empty list', []],
    ['without the base package', [{ ...EARLIER }], WITH_EARLIER],
    ['with more volume than was bought', [BASE], ONLY_THE_ORDER, { totalVolume: 2 * GB }],
    ['with volume that was added to the base package itself', [{ ...BASE, volume: 2 * GB }]],
    ['without a volume', [BASE], ONLY_THE_ORDER, { totalVolume: null }],
    [
      'where no volume is known of the base package',
      [{ ...BASE, volume: null }],
      { ...ONLY_THE_ORDER, baseBytes: null },
      { totalVolume: GB },
    ],
    ['on an unlimited plan', [BASE], { ...ONLY_THE_ORDER, baseBytes: null }, { unlimited: true }],
    ['where the base package is younger than the top-up', [{ ...BASE, createdAt: at(2) }]],
    ['where a settled top-up is not shown', [BASE], WITH_EARLIER],
    [
      'with two packages that nothing accounts for',
      [BASE, { ...OURS, transactionId: 'x' }, { ...OURS, transactionId: 'y' }],
    ],
    [
      'beside another one in doubt',
      [BASE, { ...OURS, transactionId: 'x' }],
      { ...ONLY_THE_ORDER, doubtful: 1 },
    ],
    ['with a package of another kind', [BASE, { ...OURS, transactionId: 'x', packageCode: 'TOPUP_PFR1D7' }]],
    ['with a package that is older than it', [BASE, { ...OURS, transactionId: 'x', createdAt: at(-600) }]],
    [
      'with a second package under the name of a settled one',
      [BASE, EARLIER, { ...OURS, transactionId: 'pt_earlier' }],
      WITH_EARLIER,
    ],
  ])('%s', (_name, packages, others, esim) => {
    expect(judge(packages, others, esim)).toBe('doubtful');
  });
});
