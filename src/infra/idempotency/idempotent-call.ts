import type { ErrorCode } from '../../common/errors/index.js';

/** What identifies one POST for idempotency (D17). */
export interface IdempotentCall {
  /** Partner and mode, or the admin token's name. */
  readonly scope: string;
  /** Null on the admin API when the header was not sent: then nothing is claimed or stored. */
  readonly key: string | null;
  /** SHA-256 of method, path and canonical body. */
  readonly fingerprint: Buffer;
  readonly requestId: string;
}

/** The outcome of a use case, before it is rendered. */
export interface Answer {
  readonly status: number;
  readonly data: unknown;
  readonly location?: string;
  /** Fields of `data` that are shown once and stored as null (D20). */
  readonly secretFields?: readonly string[];
}

/** The bytes of an answer, fresh or replayed. */
export interface RenderedAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly location: string | null;
  readonly body: string;
  /** The request id in the body: the first call's, in replays too (D8). */
  readonly requestId: string;
  readonly replayed: boolean;
  readonly errorCode: ErrorCode | null;
}
