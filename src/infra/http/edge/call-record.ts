import type { FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../../common/errors/index.js';
import type { Admission, CallRecorder, EdgeCall } from './contract.js';
import { pathOf, toOriginForm } from './edge-call.js';

const CLIENT_REQUEST_ID = /^[\w.-]{1,64}$/;

/** Reports a call that reached Fastify (D38). */
export function recordCall(
  recorder: CallRecorder,
  call: EdgeCall,
  request: FastifyRequest,
  status: number,
): void {
  const { startedAtMs, admission, replayOf, errorCode } = request;
  const route = request.is404 ? null : (request.routeOptions.url ?? null);
  recordAnswer(recorder, call, { status, startedAtMs, admission, errorCode, route, replayOf });
}

interface Answer {
  readonly status: number;
  readonly startedAtMs: number;
  readonly admission: Admission | null;
  readonly errorCode: ErrorCode | null;
  readonly route?: string | null;
  readonly replayOf?: string | null;
}

/** Reports any call of which at least the head was read. */
export function recordAnswer(recorder: CallRecorder, call: EdgeCall, answer: Answer): void {
  const clientRequestId = call.headers['x-request-id'];
  recorder.record({
    requestId: call.requestId,
    clientRequestId:
      typeof clientRequestId === 'string' && CLIENT_REQUEST_ID.test(clientRequestId) ? clientRequestId : null,
    method: call.method,
    route: answer.route ?? null,
    path: pathOf(toOriginForm(call.url)),
    status: answer.status,
    latencyMs: performance.now() - answer.startedAtMs,
    keyId: answer.admission?.keyId ?? null,
    partnerId: answer.admission?.partnerId ?? null,
    mode: answer.admission?.mode ?? null,
    remoteAddress: call.remoteAddress,
    replayOf: answer.replayOf ?? null,
    finishedAt: new Date(),
    errorCode: answer.errorCode,
  });
}

/** Reports what Node's HTTP parser refused: nobody knows who called, or what for. */
export function recordUnreadable(
  recorder: CallRecorder,
  requestId: string,
  remoteAddress: string,
  status: number,
  errorCode: ErrorCode,
): void {
  recorder.record({
    requestId,
    clientRequestId: null,
    method: '-',
    route: null,
    path: '-',
    status,
    latencyMs: 0,
    keyId: null,
    partnerId: null,
    mode: null,
    remoteAddress,
    replayOf: null,
    finishedAt: new Date(),
    errorCode,
  });
}
