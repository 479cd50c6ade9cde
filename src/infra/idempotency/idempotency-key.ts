import type { ErrorCode } from '../../common/errors/index.js';

/** Identity of one POST for idempotency (D17). */
export interface IdempotencyKey {
  /** Partner and mode, or the admin token's name. */
  readonly scope: string;
  /** Owner whose writes are limited together (D43). */
  readonly slotOwner: string;
  /** The header's value. Null if the admin API got none: then nothing is claimed or stored. */
  readonly key: string | null;
  /** SHA-256 of method, path and canonical body. */
  readonly fingerprint: Buffer;
  readonly requestId: string;
  /** The route's declared success status. */
  readonly successStatus: number;
}

/** A handler's response before it is rendered. The status is the route's, see `IdempotentPost`. */
export interface IdempotentResponse {
  readonly data: unknown;
  readonly location?: string;
  /** Fields of `data` that are shown once and stored as null (D20). */
  readonly secretFields?: readonly string[];
}

/** The bytes of a response, fresh or replayed. */
export interface RenderedResponse {
  readonly status: number;
  readonly contentType: string;
  readonly location: string | null;
  readonly body: string;
  /** Request id in the body: the first call's, in replays too (D8). */
  readonly requestId: string;
  readonly replayed: boolean;
  readonly errorCode: ErrorCode | null;
}
