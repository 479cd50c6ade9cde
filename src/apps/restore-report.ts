import type { ReadChanges } from '../audit/index.js';
import type { RepairReport, UnclaimedPurchase } from '../restore/index.js';

/** Report of a repair: what was done and what remains. `changes` is null when no log was given. */
export function renderRepair(report: RepairReport, changes: ReadChanges | null): string {
  return [
    ...renderMoved(report),
    ...report.asked.map(renderAsked),
    ...renderUnclaimed(report.unclaimed),
    ...renderChanges(changes),
    ...renderNext(report),
  ].join('\n');
}

/** Findings of the last repair, and purchases that are still unclaimed. */
export function renderStatus({ epoch, unclaimed }: Pick<RepairReport, 'epoch' | 'unclaimed'>): string {
  const state =
    epoch.completedAt === null
      ? 'INCOMPLETE: writes are blocked; run it again'
      : `completed at ${epoch.completedAt.toISOString()}`;
  return [
    `restored to ${epoch.restoredTo.toISOString()}; repair started at ${epoch.openedAt.toISOString()}; ${state}`,
    ...renderUnclaimed(unclaimed),
  ].join('\n');
}

function renderMoved({ epoch, moved }: RepairReport): readonly string[] {
  const head = `restored to ${epoch.restoredTo.toISOString()}: new event positions and object versions start above all earlier ones`;
  if (moved === null) return [`${head} (by an earlier run)`];
  const { orders, topups, sessions } = moved;
  return [
    head,
    `open orders: ${orders}, open top-ups: ${topups}; each is looked up at its wholesaler before it is placed`,
    `portal sessions ended: ${sessions}; users must sign in again`,
  ];
}

function renderAsked({ provider, found, failure, unlisted }: RepairReport['asked'][number]): string {
  if (found === null) return `ERROR ${provider} did not respond: ${failure}`;
  const looked = unlisted.map((kind) => `${kind}s`).join(' and ');
  const note =
    looked === ''
      ? ''
      : `; it does not list ${looked}, so for 24 h each one for an older eSIM is looked up before it is placed`;
  return `${provider}: ${found.length} of our references sold since one hour before the restore point${note}`;
}

function renderUnclaimed(unclaimed: readonly UnclaimedPurchase[]): readonly string[] {
  const open = unclaimed.filter(({ claimedBy }) => claimedBy === null);
  const claimed = unclaimed.length - open.length;
  if (unclaimed.length === 0) return ['the wholesalers sold nothing that the database does not have'];
  return [
    `unclaimed purchases: ${open.length}, claimed by a repeated call: ${claimed}`,
    ...open.map(
      ({ kind, reference, provider, partnerId, upstreamPackageId, sold, takenBack, soldAt }) =>
        `${partnerId === null ? 'UNKNOWN PARTNER' : 'UNCLAIMED'} ${kind} ${reference}: ${provider}, partner ${partnerId ?? 'unknown'}, package ${upstreamPackageId ?? 'unknown'}, ` +
        `${sold} sold (${takenBack} canceled), ${soldAt.toISOString()}`,
    ),
  ];
}

function renderChanges(changes: ReadChanges | null): readonly string[] {
  if (changes === null)
    return ['no --audit-log: find the changes of the lost period (revoked keys, deposits) in your logs'];
  const { logged, lost } = changes;
  if (logged === 0) return ['WARNING --audit-log has no change: check that it is the right log'];
  if (lost.length === 0) return [`no change was lost: the database has all ${logged} changes of the log`];
  return [
    `lost changes: ${lost.length}; repeat each of them, starting with revoked keys`,
    ...lost.map(
      ({ at, action, subjectId, partnerId, actor, details }) =>
        `LOST ${at.toISOString()} ${action} ${subjectId}: partner ${partnerId ?? 'none'}, by ${actor}, ${JSON.stringify(details)}`,
    ),
  ];
}

function renderNext({ isRepaired, isOpened, unclaimed }: RepairReport): readonly string[] {
  if (!isRepaired)
    return ['INCOMPLETE: writes are still blocked. Run this command again once the wholesaler is reachable.'];
  const open = unclaimed.filter(({ claimedBy }) => claimedBy === null);
  return [
    isOpened
      ? 'writes are accepted again; start the workers'
      : 'repaired, but writes are still blocked: repeat the LOST changes on the admin port, then run this with --open',
    ...(open.some(({ partnerId }) => partnerId !== null)
      ? [
          'ask each partner above to repeat its calls with the same Idempotency-Key within 48 h: it gets the original purchases and pays once',
        ]
      : []),
    ...(open.some(({ partnerId }) => partnerId === null)
      ? [
          'do not repeat a call of an UNKNOWN PARTNER, because that would buy again: cancel it at the wholesaler, or settle it manually',
        ]
      : []),
    'then run `npm run reconcile -- --since` with a time before the restore: it lists cancellations and refunds of the lost period',
  ];
}
