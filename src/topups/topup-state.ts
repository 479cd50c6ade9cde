export const TOPUP_STATUSES = ['pending', 'processing', 'completed', 'failed'] as const;
export type TopupStatus = (typeof TOPUP_STATUSES)[number];

/** As for orders (D22): a provider that says nothing leaves `processing`; both ends are final. */
const TRANSITIONS: Readonly<Record<TopupStatus, readonly TopupStatus[]>> = {
  pending: ['processing'],
  processing: ['completed', 'failed'],
  completed: [],
  failed: [],
};

/** Statuses from which a top-up may go to `to`; every UPDATE of a status names them in its WHERE. */
export function statusesBefore(to: TopupStatus): readonly TopupStatus[] {
  return TOPUP_STATUSES.filter((from) => TRANSITIONS[from].includes(to));
}
