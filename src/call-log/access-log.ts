import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { LastUsedRepository } from '../api-keys/index.js';
import { Batcher } from '../infra/batcher.js';
import type { CallRecorder, FinishedCall } from '../infra/http/edge/index.js';
import { LOGGER } from '../infra/logging.js';
import { toAccessLogLine } from './access-log-line.js';
import { CallRowWriter } from './call-row-writer.js';
import { CallRowsRepository } from './call-rows.repository.js';
import { LastUsedThrottle } from './last-used-throttle.js';
import { SuppressedCounter } from './suppressed-counter.js';
import { UnknownCallerCap } from './unknown-caller-cap.js';

/** Well below the second within which a row must be visible (D38). */
const GATHER_MS = 200;
const FLUSH_AT_CALLS = 500;

/**
 * The log of both HTTP ports: a line and a row per call, written in batches off the request path (D38). Nest ends
 * it in `onApplicationShutdown`, which comes after the HTTP server has answered its last call.
 */
@Injectable()
export class AccessLog implements CallRecorder, OnApplicationShutdown {
  private readonly fresh: Batcher<FinishedCall>;
  private readonly lines: Logger;
  private readonly rows: CallRowWriter;
  private readonly cap = new UnknownCallerCap();
  private readonly capped: SuppressedCounter;
  private readonly uses: LastUsedThrottle;

  constructor(rows: CallRowsRepository, keys: LastUsedRepository, @Inject(LOGGER) logger: Logger) {
    // The fields are fixed and hold no secrets; redaction would double the cost of the line.
    this.lines = logger.child({}, { redact: { paths: [] } });
    this.rows = new CallRowWriter(rows, logger);
    this.uses = new LastUsedThrottle(keys, logger);
    this.capped = new SuppressedCounter(
      logger,
      'call_log.capped',
      'calls without a known key beyond the rows of their address',
    );
    this.fresh = new Batcher<FinishedCall>({
      maxItems: FLUSH_AT_CALLS,
      gather: GATHER_MS,
      handle: (calls) => Promise.resolve(this.log(calls)),
      failed: (call, error) =>
        logger.error(
          { event: 'call_log.failed', requestId: call.requestId, err: error },
          'a call is not logged',
        ),
    });
  }

  /** On the path of every call: a push and a comparison. */
  record(call: FinishedCall): void {
    this.fresh.add(call);
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Writes everything recorded so far. To be called once nothing records any more; again is harmless. */
  async close(): Promise<void> {
    await this.fresh.drain();
    await this.rows.close();
    await this.uses.close();
    this.capped.report();
  }

  private log(calls: readonly FinishedCall[]): void {
    if (this.lines.isLevelEnabled('info')) {
      for (const call of calls) this.lines.info(toAccessLogLine(call));
    }
    const nowMs = performance.now();
    const owed = calls.filter((call) => call.keyId !== null || this.cap.admits(call.remoteAddress, nowMs));
    this.capped.add(calls.length - owed.length);
    for (const call of owed) this.rows.add(call);
    this.uses.touch(owed, nowMs);
  }
}
