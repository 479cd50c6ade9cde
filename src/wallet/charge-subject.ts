/** What a hold pays for: one order or one top-up. */
export type ChargeSubject = { readonly orderId: string } | { readonly topupId: string };
