import type { Endpoint } from '../api/types.ts';

type Cause = NonNullable<Endpoint['failing_cause']>;

/** Why attempts fail, in words. Causes that are no failure have none. */
const CAUSES: Partial<Record<Cause, string>> = {
  dns: 'Your host has no address',
  dns_unanswered: 'No name server responded',
  refused: 'Your server refused the connection',
  reset: 'Your server closed the connection early',
  unreachable: 'We could not connect to your server',
  tls_expired: 'Your TLS certificate expired',
  tls_wrong_host: 'Your TLS certificate is for another host',
  tls_untrusted: 'Your TLS certificate is not accepted',
  tls_handshake: 'The TLS handshake failed',
  too_much_before_status: 'Your server sent too much before the status',
  timeout: 'Your server did not respond in time',
  redirect: 'Your server redirected the request',
  unauthorized: 'Your server returned 401 or 403',
  not_found: 'Your server returned 404',
  gone: 'Your server returned 410',
  rate_limited: 'Your server returned 429',
  client_error: 'Your server returned an error (4xx)',
  server_error: 'Your server returned an error (5xx)',
  protocol: 'Your server sent an invalid HTTP response',
  target_refused: 'Your URL has no public address',
  our_side: 'We failed to send',
};

/** Null for a cause that is no failure. */
export const causeInWords = (cause: Cause | null): string | null => (cause && CAUSES[cause]) ?? null;
