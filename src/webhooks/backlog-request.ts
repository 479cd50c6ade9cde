import type { Mode } from '../common/mode.js';
import type { RowCursor } from '../infra/database/index.js';

/** What is done with the deliveries of an endpoint that was enabled, in this order (D32). */
export type BacklogStep = 'release' | 'find_last_success' | 'resend';

/** How far an endpoint's backlog is settled. Times are texts: a Date would cut microseconds. */
export interface BacklogRequest {
  readonly endpointId: string;
  readonly partnerId: string;
  readonly mode: Mode;
  /** Null when all is done. */
  readonly step: BacklogStep | null;
  readonly resend: boolean;
  readonly requestedAt: string;
  readonly lastSuccessAt: string | null;
  /** The last delivery that the step has read; null at its beginning. */
  readonly cursor: RowCursor | null;
  readonly resent: number;
  /** Another resend was asked for before this one was done. */
  readonly resendAgain: boolean;
}

/** A row of `webhook_backlog_requests` with what its endpoint says. */
export interface BacklogRequestRow {
  endpoint_id: string;
  partner_id: string;
  mode: Mode;
  step: BacklogStep;
  resend: boolean;
  requested_at: string;
  last_success_at: string | null;
  cursor_at: string | null;
  cursor_id: string | null;
  resent: number;
  resend_again: boolean;
}

export function toRequest(row: BacklogRequestRow): BacklogRequest {
  return {
    endpointId: row.endpoint_id,
    partnerId: row.partner_id,
    mode: row.mode,
    step: row.step,
    resend: row.resend,
    requestedAt: row.requested_at,
    lastSuccessAt: row.last_success_at,
    cursor: toCursor(row.cursor_at, row.cursor_id),
    resent: row.resent,
    resendAgain: row.resend_again,
  };
}

export function toCursor(at: string | null, id: string | null): RowCursor | null {
  return at === null || id === null ? null : { at, id };
}
