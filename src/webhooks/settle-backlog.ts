import { Injectable } from '@nestjs/common';
import { AuditLog } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import type { BacklogRequest, BacklogStep } from './backlog-request.js';
import { BacklogRequestsRepository } from './backlog-requests.repository.js';

/** What becomes of the backlog when an endpoint is enabled (D32). */
export interface BacklogChoice {
  readonly held: 'release' | 'discard';
  readonly failed: 'resend' | 'leave';
}

/** Deliveries that one step reads: a few tens of milliseconds. */
const STEP_SIZE = 2_000;
/** Release, the search for the last 2xx, and the resend of a small backlog are over when the call is answered. */
const STEPS_AT_ONCE = 3;

/**
 * Carries out what enabling an endpoint means for its deliveries: releases what was held, resends what failed (D32).
 * It begins in the transaction that enables the endpoint, and goes on in the worker, a step at a time, each with its
 * cursor in one transaction: the endpoint is not locked for long, and who is killed in between loses nothing.
 */
@Injectable()
export class SettleBacklog {
  constructor(
    private readonly requests: BacklogRequestsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** Begins; answers how many were resent at once. The endpoint is locked. */
  async begin(tx: Tx, endpointId: string, { held, failed }: BacklogChoice): Promise<number> {
    const resend = failed === 'resend';
    if (held === 'discard' && !resend) {
      await this.requests.remove(tx, endpointId);
      return 0;
    }
    await this.requests.replace(tx, endpointId, held === 'release' ? 'release' : 'find_last_success', resend);
    let request = await this.requests.lock(tx, endpointId);
    const before = request?.resent ?? 0;
    for (let steps = 0; request?.step && steps < STEPS_AT_ONCE; steps++)
      request = await this.take(tx, request);
    return (request?.resent ?? before) - before;
  }

  /**
   * Takes one step of the endpoint's request, and audits its end; false when there is nothing more to do, or another
   * worker is at it.
   */
  async advance(tx: Tx, endpointId: string): Promise<boolean> {
    const request = await this.requests.lock(tx, endpointId);
    if (!request) return false;
    const { step, partnerId, resent } = await this.take(tx, request);
    if (step !== null) return true;
    const action = 'webhook_endpoint.backlog_settled';
    await this.audit.record(tx, {
      actor: 'system',
      action,
      partnerId,
      subjectId: endpointId,
      details: { resent },
    });
    return false;
  }

  /** The request after a step of it; without a further step it is gone. */
  private async take(tx: Tx, request: BacklogRequest): Promise<BacklogRequest> {
    const { isMore, ...done } = await this.perform(tx, request);
    const after = { ...request, ...done };
    if (isMore) await this.requests.save(tx, after);
    else return this.beginNextStep(tx, after);
    return after;
  }

  private async beginNextStep(tx: Tx, request: BacklogRequest): Promise<BacklogRequest> {
    const next = { ...request, step: stepAfter(request), cursor: null };
    if (next.step === null && next.resendAgain) await this.requests.beginAgain(tx, request.endpointId);
    else if (next.step === null) await this.requests.remove(tx, request.endpointId);
    else await this.requests.save(tx, next);
    return next;
  }

  private async perform(
    tx: Tx,
    request: BacklogRequest,
  ): Promise<Partial<BacklogRequest> & { readonly isMore: boolean }> {
    switch (request.step) {
      case 'release':
        return this.requests.release(tx, request, STEP_SIZE);
      case 'find_last_success':
        return this.requests.findLastSuccess(tx, request, STEP_SIZE);
      case 'resend': {
        const { resent, ...page } = await this.requests.resend(tx, request, STEP_SIZE);
        return { ...page, resent: request.resent + resent };
      }
      case null:
        return { isMore: false };
    }
  }
}

function stepAfter({ step, resend }: BacklogRequest): BacklogStep | null {
  if (step === 'release') return resend ? 'find_last_success' : null;
  return step === 'find_last_success' ? 'resend' : null;
}
