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
      ? 'NOT ended: writes are refused; run it again'
      : `ended at ${epoch.completedAt.toISOString()}`;
  return [
    `restored to ${epoch.restoredTo.toISOString()}; the repair began at ${epoch.openedAt.toISOString()} and has ${state}`,
    ...renderUnclaimed(unclaimed),
  ].join('\n');
}

function renderMoved({ epoch, moved }: RepairReport): readonly string[] {
  const head = `restored to ${epoch.restoredTo.toISOString()}: positions of events and versions of objects begin above all that were given`;
  if (moved === null) return [`${head} (by an earlier run)`];
  const { orders, topups, sessions } = moved;
  return [
    head,
    `${orders} orders and ${topups} top-ups were open: they are looked for at their wholesaler before they are placed`,
    `${sessions} portal sessions were ended: people sign in again`,
  ];
}

function renderAsked({ provider, found, failure, unlisted }: RepairReport['asked'][number]): string {
  if (found === null) return `ERROR ${provider} did not answer: ${failure}`;
  const looked = unlisted.map((kind) => `${kind}s`).join(' and ');
  const note =
    looked === ''
      ? ''
      : `; it does not list ${looked}: one for an eSIM of before the restore is looked for before it is placed, for 24 h`;
  return `${provider}: ${found.length} references of ours sold since an hour before${note}`;
}

function renderUnclaimed(unclaimed: readonly UnclaimedPurchase[]): readonly string[] {
  const open = unclaimed.filter(({ claimedBy }) => claimedBy === null);
  const claimed = unclaimed.length - open.length;
  if (unclaimed.length === 0) return ['nothing was sold that the database does not know'];
  return [
    `${open.length} purchases are unclaimed, ${claimed} claimed by a repeated call`,
    ...open.map(
      ({ kind, reference, provider, partnerId, upstreamPackageId, sold, takenBack, soldAt }) =>
        `${partnerId === null ? 'UNKNOWN PARTNER' : 'UNCLAIMED'} ${kind} ${reference}: ${provider}, partner ${partnerId ?? 'not told'}, package ${upstreamPackageId ?? 'unknown'}, ` +
        `${sold} sold (${takenBack} taken back), ${soldAt.toISOString()}`,
    ),
  ];
}

function renderChanges(changes: ReadChanges | null): readonly string[] {
  if (changes === null)
    return [
      'no --audit-log: what was changed in the lost time (revoked keys, deposits) has to be found in your logs',
    ];
  const { logged, lost } = changes;
  if (logged === 0) return ['WARNING no line of --audit-log tells of a change: is it the right log?'];
  if (lost.length === 0) return [`no change was lost: all ${logged} of the log are on record`];
  return [
    `${lost.length} changes were lost: make each of them again, keys that were revoked first`,
    ...lost.map(
      ({ at, action, subjectId, partnerId, actor, details }) =>
        `LOST ${at.toISOString()} ${action} ${subjectId}: partner ${partnerId ?? 'none'}, by ${actor}, ${JSON.stringify(details)}`,
    ),
  ];
}

function renderNext({ isRepaired, isOpened, unclaimed }: RepairReport): readonly string[] {
  if (!isRepaired)
    return ['NOT ENDED: writes stay refused. Run the same command again when the wholesaler answers.'];
  const open = unclaimed.filter(({ claimedBy }) => claimedBy === null);
  return [
    isOpened
      ? 'writes are taken again; start the workers'
      : 'repaired; writes are still refused: make LOST changes again on the admin port, then run this with --open',
    ...(open.some(({ partnerId }) => partnerId !== null)
      ? [
          'ask each partner above to repeat its calls with the same Idempotency-Key within 48 h: they get what was bought, and pay for it once',
        ]
      : []),
    ...(open.some(({ partnerId }) => partnerId === null)
      ? [
          'of UNKNOWN PARTNER nobody may repeat the call, it would be bought again: cancel it at the wholesaler, or settle it by hand',
        ]
      : []),
    'then `npm run reconcile -- --since` a time before the restore: it names what was taken back or refunded in the lost time',
  ];
}
