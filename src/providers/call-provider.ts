import type { Dispatcher } from 'undici';
import { AppError } from '../common/errors/index.js';
import { withinLimit } from '../common/time-limit.js';
import type { AppConfig } from '../config/index.js';
import { type EsimProvider, ProviderOutcomeUnknown, ProviderUnavailable } from './esim-provider.js';

const deadlines = new WeakMap<AbortSignal, number>();

/**
 * Latest time (by `performance.now()`) at which a request may be sent under a signal of `callProvider`; Infinity for
 * any other signal, including one derived from it. The abort alone cannot guarantee this: when a frozen process wakes
 * up, a slot or connection may become ready before the timer that would abort the call. The sender therefore checks the
 * clock in the same step.
 */
export function deadlineOf(signal: AbortSignal): number {
  return deadlines.get(signal) ?? Infinity;
}

/** Retry delay for a caller whose deadline passed before its call began. */
const RETRY_LATE_MS = 1_000;

/**
 * Runs one provider call under the provider's deadline, counted from `since`, a time of `performance.now()`. For a
 * placement, `since` is the time before its note was written: the request is sent within the timeout after the note, or
 * not at all. Code that waits for the read lag after the note therefore finds the placement (D19), however long this
 * process was frozen in between. Only the catalog, which places nothing, uses a `timeoutMs` other than its provider's.
 * @throws ProviderUnavailable when the deadline passed before the call began: nothing was sent
 * @throws ProviderOutcomeUnknown when it passes during the call
 */
export async function callProvider<T>(
  provider: EsimProvider,
  call: (signal: AbortSignal) => Promise<T>,
  since: number = performance.now(),
  timeoutMs: number = provider.timeoutMs,
): Promise<T> {
  const deadlineAt = since + timeoutMs;
  const leftMs = deadlineAt - performance.now();
  if (leftMs <= 0) throw new ProviderUnavailable(RETRY_LATE_MS);
  return withinLimit(
    leftMs,
    () => new ProviderOutcomeUnknown(),
    (signal) => {
      deadlines.set(signal, deadlineAt);
      return call(signal);
    },
  );
}

/**
 * Queries a provider while a person waits; null when the provider did not respond.
 * @throws AppError `service_unavailable` when no query was sent (busy, no connection, our own rate limit or circuit).
 * That proves nothing, so the caller must not treat it as a provider that did not respond.
 */
export async function askProvider<T>(
  provider: EsimProvider,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<{ readonly answer: T } | null> {
  try {
    return { answer: await callProvider(provider, call) };
  } catch (error) {
    if (error instanceof ProviderOutcomeUnknown) return null;
    if (!(error instanceof ProviderUnavailable)) throw error;
    const detail = 'The wholesaler is temporarily unavailable. Retry with the same Idempotency-Key.';
    throw new AppError('service_unavailable', { detail, cause: error });
  }
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;
/** Maximum delay between lookups, whatever time the provider names. */
const MAX_WAIT_MS = 60_000;

/**
 * Milliseconds to wait after the `attempts`-th lookup without a result: the time that an unavailable provider named,
 * otherwise twice as long each time.
 */
export function retryDelayMs(attempts: number, error?: unknown): number {
  if (error instanceof ProviderUnavailable) {
    return Math.min(MAX_WAIT_MS, Math.max(FIRST_RETRY_MS, error.retryAfterMs));
  }
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
}

/** The deadline passed before the request was written: nothing was sent. */
export class SendDeadlineExceeded extends ProviderUnavailable {
  readonly code = 'too_late';

  constructor() {
    super(RETRY_LATE_MS);
  }
}

/** Uses `performance.now()`, which is CLOCK_MONOTONIC: it keeps running through SIGSTOP and garbage collection. */
export function isPastDeadline(sendDeadline: number): boolean {
  return performance.now() >= sendDeadline;
}

/**
 * Fails a request that would begin after `sendDeadline` with `SendDeadlineExceeded`. undici starts a request in the
 * same step that writes it to a ready connection. No lookup, handshake or wait for a connection can therefore happen
 * between this check and the first byte.
 */
export function failAfterSendDeadline(sendDeadline: number): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        // Throw instead of aborting: an abort closes the connection, and the next slot would wait for a new one.
        if (isPastDeadline(sendDeadline)) throw new SendDeadlineExceeded();
        handler.onRequestStart?.(controller, context);
      },
      onResponseStart: (...answer) => handler.onResponseStart?.(...answer),
      onResponseData: (...data) => handler.onResponseData?.(...data),
      onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
      onResponseError: (...failure) => handler.onResponseError?.(...failure),
    });
}

/**
 * Share of the shutdown timeout that in-flight calls may use. Calls without a response by then are dropped: the job's
 * lease lapses, and the order or top-up is looked up by its reference.
 */
const DRAIN_SHARE = 0.75;

/** The Sandbox has no pace, and one statement for twice as many purchases of a partner costs little more. */
const SANDBOX_FACTOR = 2;

export type ProviderWorkerConfig = Pick<
  AppConfig,
  'provisioning' | 'sweepIntervalMs' | 'leaseMs' | 'shutdownTimeoutMs'
>;

/** Worker options that give each partner its own concurrency (D27, Fairness). Times in milliseconds. */
export function providerWorkerOptions(config: ProviderWorkerConfig) {
  return {
    concurrencyPerGroup: config.provisioning.concurrencyPerPartner,
    concurrencyPerSandboxGroup: config.provisioning.concurrencyPerPartner * SANDBOX_FACTOR,
    sweepIntervalMs: config.sweepIntervalMs,
    leaseMs: config.leaseMs,
    drainMs: config.shutdownTimeoutMs * DRAIN_SHARE,
    recordMs: 0,
  };
}
