/**
 * Settles as `work` does, or rejects with the reason of `signal` once it aborts. Does not wait for `work` to notice.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  // Added before `work` adds its own listener: the abort's reason wins over an error that `work` derives from it.
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted.promise, work(signal)]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Settles as `work` does, or rejects with the error of `late` after `limitMs` milliseconds. The signal of `work` then
 * aborts for the same reason.
 */
export async function withinLimit<T>(
  limitMs: number,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  // After a stall, the event loop runs timers before it reads sockets. The extra turn accepts data that arrived in
  // time.
  const timer = setTimeout(() => setImmediate(() => controller.abort(late())), limitMs);
  try {
    return await untilAborted(controller.signal, work);
  } finally {
    clearTimeout(timer);
  }
}

const LATE = new Error('the time limit has passed');

/**
 * Whether `work` ends within `limitMs` milliseconds. If it does not, it keeps running. @throws any error that `work`
 * throws in time
 */
export async function endsWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  try {
    await withinLimit(
      limitMs,
      () => LATE,
      () => work,
    );
    return true;
  } catch (error) {
    if (error === LATE) return false;
    throw error;
  }
}
