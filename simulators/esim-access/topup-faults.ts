/**
 * How top-ups are answered and shown. Every switch is about the top-ups that arrive while it is on, may be combined
 * with the others, and what it made of a purchase stays. `POST /__control {"faults": {"topups": {…}}}` sets the named
 * ones and leaves the rest; `{"faults": {"topups": null}}` puts all of them back.
 */
export interface TopupFaults {
  /** The answer and the entry in `packageList` have a transactionId of the wholesaler's own. */
  otherId: boolean;
  /** Neither the answer nor the entry has a transactionId. */
  noId: boolean;
  /** The entry has the transactionId of the eSIM's order. The answer is as it would be without. */
  orderId: boolean;
  /** The entry has the package code without `TOPUP_`, and no transactionId. The answer is as it would be without. */
  baseCodeWithoutId: boolean;
  /** Milliseconds for which looks show neither the entry nor its volume and days. */
  lateEntry: number;
  /** So many of the next top-ups are applied, and their connections cut. */
  lostAnswer: number;
  /** A repeated transactionId is refused with 310402 instead of being applied again. */
  refuseRepeats: boolean;
  /** The entry has one field more: `topUpEsimTranNo`. */
  numberedEntry: boolean;
}

export function noTopupFaults(): TopupFaults {
  return {
    otherId: false,
    noId: false,
    orderId: false,
    baseCodeWithoutId: false,
    lateEntry: 0,
    lostAnswer: 0,
    refuseRepeats: false,
    numberedEntry: false,
  };
}
