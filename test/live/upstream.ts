/** What the service asks a provider to do; everything else only asks. */
export type Act = 'order' | 'cancel' | 'topup';

/** What a provider's own books say of one reference of ours. */
export interface UpstreamAccount {
  /** eSIMs sold under it, canceled ones included. */
  readonly bought: number;
  readonly canceled: number;
  /** Still under way: nobody knows yet what they cost. */
  readonly open: number;
}

/** A faulty answer in place of the real one. */
export type Nonsense = 'html' | 'server_error';

/** A provider's simulator with its faults and books, whichever it is. Counts are about the next calls only. */
export interface Upstream {
  /** As orders and packages name it. */
  readonly name: 'esim_access' | 'zendit';
  /** Where it listens. */
  readonly url: string;
  /** Settings that connect the service to it at `url`. */
  settings(url: string): Record<string, string>;
  /** 1 GB for 7 days, as our catalog names it, and a top-up that fits it. */
  readonly packageId: string;
  readonly topupPackageId: string;
  /** Null for a call that only asks. */
  actOf(method: string, path: string, body: string): Act | null;

  account(reference: string): UpstreamAccount;
  topupsOf(reference: string): number;
  /** Every reference that was ever used for an order or a top-up. */
  references(): readonly string[];
  /** Orders, top-ups and refunds that arrived although they were known already. */
  repeats(): number;
  /** Orders or top-ups that arrived, those included that were dropped or refused. */
  arrivals(act: 'order' | 'topup'): number;

  dropAnswersAfterCommit(n: number): void;
  dropCallsBeforeCommit(n: number): void;
  /** Answers without an effect. */
  talkNonsense(n: number, kind: Nonsense): void;
  runOutOfFunds(): void;
  runOutOfStock(): void;
  /** The package costs a tenth more from now on; orders at the old price are refused. */
  raisePrice(): void;
  issueIccids(kind: 'reused' | 'not_luhn'): void;
  /** The customer's device has loaded and used the eSIM. */
  useEsim(esim: { readonly upstreamId: string; readonly iccid: string }): void;
  /** From now on it tells the service's listener of callbacks what has ended; absent where nothing takes time. */
  callBack?(url: string): void;
  /** No faults, enough money. */
  calmDown(): void;
  close(): Promise<void>;
}
