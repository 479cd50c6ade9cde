/** A provider call with side effects. All other calls are queries. */
export type Act = 'order' | 'cancel' | 'topup';

/** The provider's own books for one of our references. */
export interface UpstreamAccount {
  /** eSIMs sold under the reference, including canceled ones. */
  readonly bought: number;
  readonly canceled: number;
  /** Purchases still in progress, whose cost is unknown. */
  readonly open: number;
}

/** A faulty response instead of the real one. */
export type Nonsense = 'html' | 'server_error';

/** The simulator of either provider, with its faults and books. Counts apply to the next calls only. */
export interface Upstream {
  /** The provider's name in orders and packages. */
  readonly name: 'esim_access' | 'zendit';
  /** Its own URL. */
  readonly url: string;
  /** Settings that connect the service to the simulator at `url`. */
  settings(url: string): Record<string, string>;
  /** A package of 1 GB for 7 days in our catalog, and a top-up that fits it. */
  readonly packageId: string;
  readonly topupPackageId: string;
  /** Null for a query. */
  actOf(method: string, path: string, body: string): Act | null;

  account(reference: string): UpstreamAccount;
  topupsOf(reference: string): number;
  /** All references that were ever used for an order or a top-up. */
  references(): readonly string[];
  /** Number of orders, top-ups and refunds that arrived although they were already known. */
  repeats(): number;
  /** Number of orders or top-ups that arrived, including dropped and refused ones. */
  arrivals(act: 'order' | 'topup'): number;

  dropAnswersAfterCommit(n: number): void;
  dropCallsBeforeCommit(n: number): void;
  /** Makes the next `n` responses unusable. Those calls have no effect. */
  talkNonsense(n: number, kind: Nonsense): void;
  runOutOfFunds(): void;
  runOutOfStock(): void;
  /** Raises the package price by a tenth. Orders at the old price are refused. */
  raisePrice(): void;
  issueIccids(kind: 'reused' | 'not_luhn'): void;
  /** Simulates that the customer's device has loaded and used the eSIM. */
  useEsim(esim: { readonly upstreamId: string; readonly iccid: string }): void;
  /** From now on, sends a callback to this URL when a purchase ends. Absent if purchases end synchronously. */
  callBack?(url: string): void;
  /** Removes all faults and funds the account. */
  calmDown(): void;
  close(): Promise<void>;
}
