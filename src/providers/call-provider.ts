import type { Dispatcher } from 'undici';
import { AppError } from '../common/errors/index.js';
import type { AppConfig } from '../config/index.js';
import { type EsimProvider, ProviderOutcomeUnknown, ProviderUnavailable } from './esim-provider.js';

const deadlines = new WeakMap<AbortSignal, number>();

/**
 * The time, by `performance.now()`, after which nothing may leave under a signal of `callProvider`; Infinity for any
 * other, also for one that is made from it. The abort alone cannot promise that: when a frozen process wakes up, what
 * a call has waited for (a slot, a connection) may be handled before the timer that would abort it. So whoever sends
 * compares the clock in the same step.
 */
export function deadlineOf(signal: AbortSignal): number {
  return deadlines.get(signal) ?? Infinity;
}

/** The caller whose deadline passed before its call began is to wait so long. */
const RETRY_LATE_MS = 1_000;

/**
 * Runs one provider call under the provider's deadline, counted from `since`, a time of `performance.now()`. A
 * placement's is that before its note was written: it leaves within the timeout after its note, or not at all, so that
 * whoever waits for the read lag after the note sees it (D19), however long this process was frozen in between. Only the
 * catalogue, which places nothing, has another `timeoutMs` than its provider.
 * @throws ProviderUnavailable when the deadline passed before the call began: nothing has left
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
  const controller = new AbortController();
  deadlines.set(controller.signal, deadlineAt);
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new ProviderOutcomeUnknown());
      controller.abort();
    }, leftMs);
  });
  try {
    return await Promise.race([call(controller.signal), deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Asks for somebody who waits; null when the provider was asked and gave no answer.
 * @throws AppError `service_unavailable` when it was not asked at all (busy, no connection, our own pace or circuit):
 * that says nothing, so nobody may decide as if it were silent
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
    const detail = 'The wholesaler takes no calls now. Try again with the same Idempotency-Key.';
    throw new AppError('service_unavailable', { detail, cause: error });
  }
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;
/** A provider may name any time; nothing is forgotten for longer than this. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Milliseconds to wait after the `attempts`-th look that led to nothing: what the provider asked for when it was
 * unavailable, else twice as long each time.
 */
export function retryDelayMs(attempts: number, error?: unknown): number {
  if (error instanceof ProviderUnavailable) {
    return Math.min(LONGEST_WAIT_MS, Math.max(FIRST_RETRY_MS, error.retryAfterMs));
  }
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
}

/** The time of a call had passed before its request was written: nothing has left. */
export class SendDeadlineExceeded extends ProviderUnavailable {
  readonly code = 'too_late';

  constructor() {
    super(RETRY_LATE_MS);
  }
}

/** By `performance.now()`, which is CLOCK_MONOTONIC: SIGSTOP and a garbage collection do not stop it. */
export function isPastDeadline(sendDeadline: number): boolean {
  return performance.now() >= sendDeadline;
}

/**
 * Lets no request begin after `sendDeadline`: it then fails with `SendDeadlineExceeded`. undici starts a request when its
 * connection is there, in the same step in which it writes it, so no wait for a name, a handshake or a free connection
 * is left between this look at the clock and the first byte.
 */
export function failAfterSendDeadline(sendDeadline: number): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        // Thrown, not aborted: an abort would close the connection, and the next slot would have to wait for another.
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
 * The part of a stop's time that calls under way may still take. What a provider has not answered by then is left: the
 * job's lease lapses, and the order or top-up is asked for by its reference.
 */
const DRAIN_SHARE = 0.75;

/** The settings of a worker whose jobs call providers. */
export type ProviderWorkerConfig = Pick<
  AppConfig,
  'provisioning' | 'sweepIntervalMs' | 'leaseMs' | 'shutdownTimeoutMs'
>;

/** How such a worker runs its jobs: each partner has its own concurrency (D27, Fairness). Times in milliseconds. */
export function providerWorkerOptions(config: ProviderWorkerConfig) {
  return {
    concurrencyPerGroup: config.provisioning.concurrencyPerPartner,
    sweepIntervalMs: config.sweepIntervalMs,
    leaseMs: config.leaseMs,
    drainMs: config.shutdownTimeoutMs * DRAIN_SHARE,
    recordMs: 0,
  };
}
