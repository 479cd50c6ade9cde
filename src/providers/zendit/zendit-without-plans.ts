import type { KnownEsim, ProviderEsimReading, ProviderEsimRef } from '../esim-provider.js';

/** For so long after a top-up, or after a first look in vain, an empty list may be one that lags. */
const LAG_MS = 600_000;
/** The last level before the end of which partners are told. */
const NEARLY_ALL_PERCENT = 80;

/**
 * What it means that Zendit lists no plan of an eSIM; null: nothing, so look again.
 *
 * - Nobody ever saw it in use: `issued`. It has no plan yet, or the read lags; its end is our own clock's matter.
 * - Its validity is over: `expired`.
 * - It was in use, 80 % of its data at least, and its validity goes on: the plan has left the list with its data, so it is `depleted`. A reading
 *   that says so takes nothing back, therefore one empty list is not enough: the look before must have been in vain as
 *   well, a lag ago, and no top-up may be on its way into the list. Unlimited data do not run out.
 */
export function withoutPlans(
  { providerEsimId, known }: ProviderEsimRef,
  profileStatus: ProviderEsimReading['profileStatus'],
  asOf: Date,
): ProviderEsimReading | null {
  const status = known?.activatedAt ? endOf(known, asOf) : 'issued';
  if (status === null) return null;
  const told = { usedBytes: null, totalBytes: null, activatedAt: null, expiresAt: null };
  return { providerEsimId, status, profileStatus, ...told, asOf };
}

function endOf(known: KnownEsim, asOf: Date): 'expired' | 'depleted' | null {
  const isLongAgo = (since: Date) => asOf.getTime() - since.getTime() >= LAG_MS;
  if (known.toppedUpAt && !isLongAgo(known.toppedUpAt)) return null;
  if (known.expiresAt && known.expiresAt <= asOf) return 'expired';
  if (known.totalBytes === null || known.usedBytes === 0) return null;
  if (known.usedBytes >= known.totalBytes) return 'depleted';
  // A look in vain may have been an error: only data that was nearly used up is believed to have run out.
  if (known.usedBytes * 100 < known.totalBytes * NEARLY_ALL_PERCENT) return null;
  return known.lookedInVainAt && isLongAgo(known.lookedInVainAt) ? 'depleted' : null;
}
