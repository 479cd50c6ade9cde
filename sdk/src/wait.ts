import type { Events } from './events.js';
import { type CallOptions, pause } from './transport.js';

export interface WaitOptions {
  /** Default 60 s. A call in flight at the timeout may take until its own deadline. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const WAIT_MS = 60_000;
/** Poll, because no event reports the end of a cancellation. */
const LOOK_EVERY_MS = 2_000;
const MAX_WAIT_SECONDS = 25;
const OPEN = new Set(['pending', 'processing', 'canceling']);

/**
 * Reads an order or a top-up until it has ended, with long polling of its events. After the timeout, returns it in its
 * current state.
 * @throws the reason of `signal`, and any error of a read
 */
export async function waitUntilEnded<T extends { readonly id: string; readonly status: string }>(
  events: Events,
  read: (options: CallOptions) => Promise<T>,
  { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
): Promise<T> {
  const endsAt = performance.now() + timeoutMs;
  const options = signal ? { signal } : {};
  let after: string | undefined;
  for (;;) {
    const found = await read(options);
    const leftMs = endsAt - performance.now();
    if (!OPEN.has(found.status) || leftMs <= 0) return found;
    if (found.status === 'canceling') {
      await pause(Math.min(LOOK_EVERY_MS, leftMs), signal);
      continue;
    }
    const waitSeconds = Math.min(MAX_WAIT_SECONDS, Math.ceil(leftMs / 1_000));
    const page = await events.list(
      { subject: found.id, ...(after ? { after } : {}) },
      { ...options, waitSeconds },
    );
    after = page.nextCursor;
    if (page.data.length === 0 && !page.waited) await pause(Math.min(LOOK_EVERY_MS, leftMs), signal);
  }
}
