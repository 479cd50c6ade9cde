import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { MINUTE_MS } from '../common/durations.js';
import { LastUsedRepository } from '../api-keys/index.js';
import { Batcher } from '../infra/batcher.js';
import type { CallRecorder, FinishedCall } from '../infra/http/edge/index.js';
import { LOGGER } from '../infra/logging.js';
import { METRICS, observeBatches } from '../infra/metrics.js';
import { toAccessLogLine } from './access-log-line.js';
import { CallRowWriter, SuppressedCounter } from './call-row-writer.js';
import { CallRowsRepository } from './call-log.repository.js';
import { RefusedCallCap, UnknownCallerCap } from './row-caps.js';

/** Well below the second within which a row must be visible. */
const GATHER_MS = 200;
const FLUSH_AT_CALLS = 500;

/**
 * Logs calls of both HTTP ports: a line and a row per call, written in batches off the request path (D38). Nest closes
 * it in `onApplicationShutdown`, after the HTTP server has sent its last response.
 */
@Injectable()
export class AccessLog implements CallRecorder, OnApplicationShutdown {
  private readonly fresh: Batcher<FinishedCall>;
  private readonly lines: Logger;
  private readonly rows: CallRowWriter;
  private readonly unknown = new UnknownCallerCap();
  private readonly refused: RefusedCallCap;
  private readonly capped: SuppressedCounter;
  private readonly uses: LastUsedThrottle;

  constructor(
    rows: CallRowsRepository,
    keys: LastUsedRepository,
    @Inject(LOGGER) logger: Logger,
    @Inject(METRICS) metrics: Registry = new Registry(),
  ) {
    // The fields are fixed and contain no secrets; redaction would double the cost of the line.
    this.lines = logger.child({}, { redact: { paths: [] } });
    this.rows = new CallRowWriter(rows, logger, observeBatches(metrics, 'api_calls'));
    this.refused = new RefusedCallCap((row) => this.rows.add(row));
    this.uses = new LastUsedThrottle(keys, logger);
    this.capped = new SuppressedCounter(
      logger,
      'call_log.capped',
      'calls without a known key beyond the rows of their address or of all of them',
    );
    this.fresh = new Batcher<FinishedCall>({
      maxItems: FLUSH_AT_CALLS,
      gather: GATHER_MS,
      handle: (calls) => Promise.resolve(this.log(calls)),
      // Nothing here waits for a server, so any error is the fault of one call.
      isItemFault: () => true,
      failed: ([call], error) =>
        logger.error(
          { event: 'call_log.failed', requestId: call!.requestId, err: error },
          'failed to log call',
        ),
    });
  }

  /** Runs on every call: one push and one comparison. */
  record(call: FinishedCall): void {
    void this.fresh.add(call);
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Writes everything recorded so far. Call it when no more calls arrive; repeated calls are harmless. */
  async close(): Promise<void> {
    await this.fresh.drain();
    this.refused.close();
    await this.rows.close();
    await this.uses.close();
    this.capped.report();
  }

  private log(calls: readonly FinishedCall[]): void {
    // Do what may throw first: a failing batch has then had no effect and is retried in parts.
    const lines = this.lines.isLevelEnabled('info') ? calls.map(toAccessLogLine) : [];
    const nowMs = performance.now();
    const known = calls.filter((call) => call.keyId !== null);
    const unknown = calls.filter(
      (call) => call.keyId === null && this.unknown.admits(call.remoteAddress, nowMs),
    );
    for (const line of lines) this.lines.info(line);
    this.capped.add(calls.length - known.length - unknown.length);
    for (const call of unknown) this.rows.add(call);
    for (const call of known) if (this.refused.admits(call, nowMs)) this.rows.add(call);
    this.uses.touch(known, nowMs);
  }
}

const MAX_KEYS = 1_000;

/** Writes `last_used_at` of calling keys: each at most once per minute and process. */
export class LastUsedThrottle {
  private readonly writtenAtMs = new Map<string, number>();
  private sweepAtMs = 0;
  private readonly due: Batcher<string>;

  constructor(keys: LastUsedRepository, logger: Logger) {
    this.due = new Batcher<string>({
      maxItems: MAX_KEYS,
      gather: 'microtask',
      handle: (keyIds) => keys.touch(keyIds),
      failed: (keyIds, error) => {
        // Let the key's next call write it.
        for (const keyId of keyIds) this.writtenAtMs.delete(keyId);
        logger.warn(
          { event: 'call_log.touch_failed', keyIds, err: error },
          'failed to write last_used_at; the next call will retry',
        );
      },
    });
  }

  /** `nowMs` never decreases. */
  touch(calls: readonly FinishedCall[], nowMs: number): void {
    this.sweep(nowMs);
    for (const { keyId } of calls) {
      if (keyId === null || this.writtenAtMs.has(keyId)) continue;
      this.writtenAtMs.set(keyId, nowMs);
      void this.due.add(keyId);
    }
  }

  close(): Promise<void> {
    return this.due.drain();
  }

  private sweep(nowMs: number): void {
    if (nowMs < this.sweepAtMs) return;
    this.sweepAtMs = nowMs + 1_000;
    for (const [keyId, atMs] of this.writtenAtMs)
      if (nowMs - atMs >= MINUTE_MS) this.writtenAtMs.delete(keyId);
  }
}
