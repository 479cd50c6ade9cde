/**
 * Settles as `work` does, or rejects with the reason of `signal` once that aborts. It does not wait for `work` to notice.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  // Before `work` listens: an abort rejects with its reason, and not with what `work` makes of it.
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted.promise, work(signal)]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Settles as `work` does, or rejects with `late` after `limitMs` milliseconds. The signal of `work` then aborts for the
 * same reason.
 */
export async function withinLimit<T>(
  limitMs: number,
  late: Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  // A loop that stood still runs its timers before it reads sockets: what came in time still counts.
  const timer = setTimeout(() => setImmediate(() => controller.abort(late)), limitMs);
  try {
    return await untilAborted(controller.signal, work);
  } finally {
    clearTimeout(timer);
  }
}

const LATE = new Error('the time limit has passed');

/** Whether `work` ended within `limitMs` milliseconds. Work that did not goes on. @throws what `work` throws in time */
export async function endsWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  try {
    await withinLimit(limitMs, LATE, () => work);
    return true;
  } catch (error) {
    if (error === LATE) return false;
    throw error;
  }
}
