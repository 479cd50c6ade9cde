import type { EsimPurchases, EsimTopup, ProviderTopupRequest } from '../esim-provider.js';
import type { QueriedEsim, QueriedPackage } from './queried-esim.js';

/** What the packages of an eSIM say of one top-up. */
export type TopupEvidence = 'present' | 'absent' | 'doubtful';

/** The clock of the wholesaler and ours may differ by so much. */
const CLOCK_SKEW_MS = 60_000;
const TOPUP_PREFIX = /^TOPUP_/;

/**
 * Judges by everything that the eSIM shows and everything that was bought for it (D22). No source shows that a package
 * on an eSIM carries the transactionId of its top-up: it may have another one, that of the order, or none. So
 * - the top-up's own name proves it present, and so does one package of its kind that nothing else accounts for;
 * - it is absent only where each package is accounted for, none is younger than the top-up, and the eSIM has no more
 *   volume than was bought: never on an unlimited plan, whose volume does not grow;
 * - everything else is a doubt, in which nothing may be bought again.
 */
export function judgeTopup(
  topup: ProviderTopupRequest,
  esim: QueriedEsim,
  others: EsimPurchases,
): TopupEvidence {
  if (esim.packages === null) return 'doubtful';
  if (esim.packages.some((bought) => bought.transactionId === topup.reference)) return 'present';
  const rest = unaccountedFor(esim.packages, others);
  if (rest === null) return 'doubtful';
  const [first, ...more] = rest.packages;
  if (first === undefined) return isWithout(topup, esim, rest, others) ? 'absent' : 'doubtful';
  const isOurs =
    more.length === 0 &&
    others.doubtful === 0 &&
    !others.topups.some(({ reference }) => reference === first.transactionId) &&
    isOfKind(first, topup.upstreamPackageId) &&
    !isOlderThan(first, topup.acceptedAt);
  return isOurs ? 'present' : 'doubtful';
}

interface Rest {
  readonly packages: readonly QueriedPackage[];
  readonly base: QueriedPackage;
}

/** The packages without those of the order and of the settled top-ups; null when one of these is not shown. */
function unaccountedFor(packages: readonly QueriedPackage[], others: EsimPurchases): Rest | null {
  // Oldest first, however the wholesaler sorts: what was bought before is older than what is looked for.
  const left = packages.toSorted((one, other) => ageOf(one) - ageOf(other));
  const take = (matches: (bought: QueriedPackage) => boolean): QueriedPackage | null => {
    const index = left.findIndex(matches);
    return index < 0 ? null : left.splice(index, 1)[0]!;
  };
  const unnamed: EsimTopup[] = others.topups.filter(
    ({ reference }) => take((bought) => bought.transactionId === reference) === null,
  );
  const isBase = ({ packageCode }: QueriedPackage): boolean => packageCode === others.basePackageId;
  const base =
    take((bought) => isBase(bought) && bought.transactionId === others.orderReference) ??
    take(isBase) ??
    take(({ packageCode }) => packageCode === null);
  if (base === null) return null;
  for (const { upstreamPackageId } of unnamed) {
    if (take((bought) => isOfKind(bought, upstreamPackageId)) === null) return null;
  }
  return { packages: left, base };
}

function isWithout(
  topup: ProviderTopupRequest,
  esim: QueriedEsim,
  { base }: Rest,
  others: EsimPurchases,
): boolean {
  const isYoung = base.createdAt !== null && base.createdAt > topup.acceptedAt;
  // The volume of a plan without a limit does not say whether anything was added to it.
  if (isYoung || esim.unlimited) return false;
  const baseBytes = Math.min(others.baseBytes ?? Infinity, base.volume ?? Infinity);
  const known = others.topups.reduce((sum, { dataBytes }) => sum + (dataBytes ?? 0), baseBytes);
  return esim.totalVolume !== null && Number.isFinite(known) && esim.totalVolume <= known;
}

/** Under its own code or under that of the base package that it repeats; one without a code may be anything. */
function isOfKind({ packageCode }: QueriedPackage, upstreamPackageId: string): boolean {
  return (
    packageCode === null ||
    packageCode.replace(TOPUP_PREFIX, '') === upstreamPackageId.replace(TOPUP_PREFIX, '')
  );
}

function isOlderThan({ createdAt }: QueriedPackage, acceptedAt: Date): boolean {
  return createdAt !== null && createdAt.getTime() < acceptedAt.getTime() - CLOCK_SKEW_MS;
}

/** One without a time may be the youngest. */
function ageOf({ createdAt }: QueriedPackage): number {
  return createdAt?.getTime() ?? Number.MAX_SAFE_INTEGER;
}
