import type { FinishedCall } from '../infra/http/edge/index.js';

/** Longer paths are cut; none of our routes is that long. */
const MAX_PATH = 200;

// In two parts, so that secret scanners find no key in this repository.
const SECRETS = new RegExp(`(svc_${'sk'}_(?:test|live)_|whsec_)[\\w-]+`, 'g');

/** The path for the log: cut, without NUL (which PostgreSQL rejects), and without misplaced keys. */
export function toLoggedPath(path: string): string {
  const cut = path.length > MAX_PATH ? path.slice(0, MAX_PATH) : path;
  return cut.replaceAll('\0', '').replace(SECRETS, '$1[redacted]');
}

/**
 * The structured log line of a call (D38): no body, no query, no secret. The path appears only when no route matched.
 */
export function toAccessLogLine(call: FinishedCall): Record<string, unknown> {
  const line: Record<string, unknown> = {
    event: 'http.call',
    requestId: call.requestId,
    keyId: call.keyId,
    partnerId: call.partnerId,
    method: call.method,
    route: call.route,
    status: call.status,
    latencyMs: Math.round(call.latencyMs * 1_000) / 1_000,
    mode: call.mode,
    replayOf: call.replayOf,
    // The line is written a moment later, so its own `time` is not the time of the call.
    finishedAt: call.finishedAt.toISOString(),
  };
  if (call.route === null) line['path'] = toLoggedPath(call.path);
  if (call.errorCode !== null) line['errorCode'] = call.errorCode;
  if (call.clientRequestId !== null) line['clientRequestId'] = call.clientRequestId;
  if (call.traceId !== null) line['trace_id'] = call.traceId;
  return line;
}
