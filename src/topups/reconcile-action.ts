/** What support may do with a top-up that does not settle by itself. */
export const RECONCILE_ACTIONS = ['requery', 'mark_completed', 'mark_failed'] as const;
export type ReconcileAction = (typeof RECONCILE_ACTIONS)[number];
