import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { CallRecorder, FinishedCall } from '../infra/http/edge/index.js';
import { LOGGER } from '../infra/logging/index.js';
import { toLoggedPath } from './logged-path.js';

/**
 * Writes the structured line of a call (D38): no body, no query, no secret; the path only where no route says
 * what was called. On its own it is the recorder of a port whose callers are no partners, so without rows.
 */
@Injectable()
export class AccessLogLines implements CallRecorder {
  private readonly logger: Logger;

  constructor(@Inject(LOGGER) logger: Logger) {
    // The fields are fixed and hold no secrets; redaction would double the cost of the line.
    this.logger = logger.child({}, { redact: { paths: [] } });
  }

  record(call: FinishedCall): void {
    if (this.logger.isLevelEnabled('info')) this.logger.info(toLine(call));
  }
}

function toLine(call: FinishedCall): Record<string, unknown> {
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
    // The line is written a moment later, so its own `time` is not the call's.
    finishedAt: call.finishedAt.toISOString(),
  };
  if (call.route === null) line['path'] = toLoggedPath(call.path);
  if (call.errorCode !== null) line['errorCode'] = call.errorCode;
  if (call.clientRequestId !== null) line['clientRequestId'] = call.clientRequestId;
  return line;
}
