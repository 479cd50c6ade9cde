import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { LastUsedRepository } from '../api-keys/index.js';
import type { CallRecorder, FinishedCall } from '../infra/http/edge/index.js';
import { LOGGER } from '../infra/logging/index.js';
import { AccessLogLines } from './call-lines.js';
import { CallRowWriter } from './call-row-writer.js';
import { CallRowsRepository } from './call-rows.repository.js';
import { LastUsedThrottle } from './key-uses.js';
import { SuppressedCounter } from './minute-tally.js';
import { UnknownCallerCap } from './unknown-caller-cap.js';

/** Well below the second within which a row must be visible (D38). */
const FLUSH_AFTER_MS = 200;
const FLUSH_AT_CALLS = 500;

/**
 * The call log of the partner port: a line and a row per call, written in batches off the request path (D38).
 * Nest ends it in `onApplicationShutdown`, which comes after the HTTP server has answered its last call.
 */
@Injectable()
export class AccessLog implements CallRecorder, OnApplicationShutdown {
  private fresh: FinishedCall[] = [];
  private timer: NodeJS.Timeout | undefined;
  private touching: Promise<void> = Promise.resolve();
  private readonly writer: CallRowWriter;
  private readonly cap = new UnknownCallerCap();
  private readonly uses = new LastUsedThrottle();
  private readonly capped: SuppressedCounter;
  private readonly flushSoon = (): void => this.flush();

  constructor(
    private readonly lines: AccessLogLines,
    rows: CallRowsRepository,
    private readonly keys: LastUsedRepository,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.writer = new CallRowWriter(rows, logger);
    this.capped = new SuppressedCounter(
      logger,
      'call_log.capped',
      'calls without a known key beyond the rows of their address',
    );
  }

  /** On the path of every call: a push and a counter. */
  record(call: FinishedCall): void {
    const waiting = this.fresh.push(call);
    if (waiting === 1) this.timer = setTimeout(this.flushSoon, FLUSH_AFTER_MS);
    else if (waiting === FLUSH_AT_CALLS) setImmediate(this.flushSoon);
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Writes everything recorded so far. To be called once nothing records any more; again is harmless. */
  async close(): Promise<void> {
    this.flush();
    await this.writer.close();
    await this.touching;
    this.capped.report();
  }

  private flush(): void {
    clearTimeout(this.timer);
    const calls = this.fresh;
    if (calls.length === 0) return;
    this.fresh = [];
    for (const call of calls) this.lines.record(call);
    const nowMs = performance.now();
    const owed = calls.filter((call) => call.keyId !== null || this.cap.admits(call.remoteAddress, nowMs));
    this.capped.add(calls.length - owed.length);
    this.writer.add(owed);
    this.touch(this.uses.takeDue(owed, nowMs));
  }

  private touch(keyIds: readonly string[]): void {
    if (keyIds.length === 0) return;
    this.touching = this.touching.then(async () => {
      try {
        await this.keys.touch(keyIds);
      } catch (error) {
        this.uses.forget(keyIds);
        this.logger.warn(
          { event: 'call_log.touch_failed', err: error },
          'last_used_at is written with the next call',
        );
      }
    });
  }
}
