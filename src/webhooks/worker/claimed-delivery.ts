import type { DeliveryEventType } from '../delivery.js';

/** A delivery under this process's lease, with all that one attempt needs. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly eventType: DeliveryEventType;
  /** Grows with every claim: whoever lost the lease can no longer write. A bigint, kept as text. */
  readonly fence: string;
  /** Attempts before this one that count among the six (D30). */
  readonly countedAttempts: number;
  readonly url: string;
  /** Sealed signing secrets, newest first (D29). */
  readonly sealedSecrets: readonly string[];
  /** The stored bytes (D28). */
  readonly body: string;
  /** Set when the lease before this one lapsed: its attempt was interrupted and must be logged first (D30). */
  readonly lapse: LapsedLease | null;
}

export interface LapsedLease {
  /** How long ago the lease lapsed, and how long the attempt had been under way then; milliseconds. */
  readonly agoMs: number;
  readonly ranMs: number;
}
