/**
 * How top-ups are answered and shown. Each switch affects top-ups that arrive while it is on, can be combined with the
 * others, and has a lasting effect on the purchase. `POST /__control {"faults": {"topups": {…}}}` sets the named
 * switches and leaves the rest; `{"faults": {"topups": null}}` resets them.
 */
export interface TopupFaults {
  /** The response and the entry in `packageList` have a transactionId chosen by the wholesaler. */
  otherId: boolean;
  /** Neither the response nor the entry has a transactionId. */
  noId: boolean;
  /** The entry has the transactionId of the eSIM's order. The response does not change. */
  orderId: boolean;
  /** The entry has the package code without `TOPUP_`, and no transactionId. The response does not change. */
  baseCodeWithoutId: boolean;
  /** Milliseconds during which queries show neither the entry nor its volume and days. */
  lateEntry: number;
  /** Number of top-ups that are applied before their connection is cut. */
  lostAnswer: number;
  /** Refuses a repeated transactionId with 310402 instead of applying it again. */
  refuseRepeats: boolean;
  /** The entry has the additional field `topUpEsimTranNo`. */
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
