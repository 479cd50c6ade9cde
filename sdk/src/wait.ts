import { pause, type WaitingRead } from './transport.js';

export interface WaitOptions {
  /** Default 60 s. A call in flight at the timeout may take until its own deadline. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const WAIT_MS = 60_000;
/** The service refuses to hold a call when too many others wait. */
const PAUSE_MS = 2_000;
const MAX_WAIT_SECONDS = 25;
const OPEN = new Set(['pending', 'processing', 'canceling']);

/**
 * Reads an order or a top-up until it has ended; the service holds each read until then, or for at most 25 s. After the
 * timeout, returns it in its current state.
 * @throws the reason of `signal`, and any error of a read
 */
export async function waitUntilEnded<T extends { readonly status: string }>(
  read: (options: WaitingRead) => Promise<T>,
  { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
): Promise<T> {
  const endsAt = performance.now() + timeoutMs;
  const options = signal ? { signal } : {};
  for (;;) {
    const startedAt = performance.now();
    const waitSeconds = Math.min(MAX_WAIT_SECONDS, Math.ceil(Math.max(0, endsAt - startedAt) / 1_000));
    const found = await read({ ...options, waitSeconds });
    const now = performance.now();
    if (!OPEN.has(found.status) || now >= endsAt) return found;
    if (now - startedAt < 500) await pause(Math.min(PAUSE_MS, endsAt - now), signal);
  }
}
