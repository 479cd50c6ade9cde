import { newId } from '../../src/common/ids.js';
import type { FinishedCall } from '../../src/infra/http/edge/index.js';

/** A finished call with a known key, plus the given changes. */
export function finishedCall(changes: Partial<FinishedCall> = {}): FinishedCall {
  return {
    requestId: newId('req'),
    clientRequestId: null,
    method: 'GET',
    route: '/v1/catalog',
    path: '/v1/catalog',
    status: 200,
    latencyMs: 1.25,
    keyId: 'key_01KAEXAMPLE000000000000000',
    partnerId: 'ptn_01KAEXAMPLE000000000000000',
    mode: 'sandbox',
    remoteAddress: '203.0.113.7',
    replayOf: null,
    finishedAt: new Date(),
    errorCode: null,
    traceId: null,
    ...changes,
  };
}

/** A finished call without a known key. */
export function unknownCall(remoteAddress: string): FinishedCall {
  return finishedCall({ keyId: null, partnerId: null, mode: null, status: 401, remoteAddress });
}
