import type { Dispatcher } from 'undici';
import { ProviderUnavailable } from '../esim-provider.js';

const RETRY_LATE_MS = 1_000;

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
