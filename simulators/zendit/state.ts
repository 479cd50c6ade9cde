import type { TransactionStatus } from './contract.ts';
import type { Ledger } from './ledger.ts';

/** Content of `GET /__state`, without activation codes. */
export interface SimulatorState {
  readonly purchases: Readonly<
    Record<
      string,
      {
        readonly status: TransactionStatus;
        readonly offerId: string;
        readonly iccid: string;
        readonly topupOf: string | null;
        readonly errorCode: string | null;
        readonly refund: TransactionStatus | null;
      }
    >
  >;
  /** Number of calls per method and area, such as `POST /esim/purchases`. */
  readonly calls: Readonly<Record<string, number>>;
  /** POSTs of purchases with a known transactionId: an adapter must never send one. */
  readonly duplicatePosts: number;
  readonly duplicateRefunds: number;
  readonly refusedForPace: number;
  readonly webhooksSent: number;
  readonly balanceMicros: number;
}

export function stateOf(
  ledger: Ledger,
  counters: Pick<SimulatorState, 'calls' | 'refusedForPace' | 'webhooksSent'>,
): SimulatorState {
  const purchases = [...ledger.purchases.values()].map(
    (purchase) =>
      [
        purchase.transactionId,
        {
          status: purchase.status,
          offerId: purchase.offer.offerId,
          iccid: purchase.confirmation.iccid,
          topupOf: purchase.topupOf,
          errorCode: purchase.error?.code ?? null,
          refund: purchase.refund?.status ?? null,
        },
      ] as const,
  );
  return {
    purchases: Object.fromEntries(purchases),
    ...counters,
    duplicatePosts: ledger.duplicatePosts,
    duplicateRefunds: ledger.duplicateRefunds,
    balanceMicros: ledger.balanceMicros,
  };
}
