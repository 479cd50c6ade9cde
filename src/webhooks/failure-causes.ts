import type { AttemptOutcome } from './delivery.js';

/** Cause of a failure as one word that programs can branch on. */
export const CAUSES = [
  'delivered',
  'not_tried',
  'dns',
  'dns_unanswered',
  'refused',
  'reset',
  'unreachable',
  'tls_expired',
  'tls_wrong_host',
  'tls_untrusted',
  'tls_handshake',
  'too_much_before_status',
  'timeout',
  'redirect',
  'unauthorized',
  'not_found',
  'gone',
  'rate_limited',
  'client_error',
  'server_error',
  'protocol',
  'target_refused',
  'our_side',
  'interrupted',
  'switched_off',
] as const;
export type Cause = (typeof CAUSES)[number];

/** Party that can fix it: the partner, this service, or the network between the two. */
export const CAUSE_OWNERS = ['you', 'us', 'network', 'nobody'] as const;
export type CauseOwner = (typeof CAUSE_OWNERS)[number];

export interface CauseInWords {
  readonly owner: CauseOwner;
  readonly summary: string;
  readonly cure: string;
}

/** Facts about the attempt to explain. */
export interface FailedAttempt {
  readonly outcome: AttemptOutcome;
  readonly statusCode: number | null;
  readonly error: string | null;
}

const CODES: readonly (readonly [RegExp, Cause])[] = [
  // These codes mean that a name server denied the name's existence.
  [/^dns: (ENOTFOUND|ENODATA|ENONAME|EBADNAME)$/, 'dns'],
  [/^dns: RESOLVER_UNAVAILABLE$/, 'our_side'],
  [/^dns/, 'dns_unanswered'],
  [/ECONNREFUSED$/, 'refused'],
  [/(ECONNRESET|ECONNABORTED|EPIPE)$/, 'reset'],
  // Our process or its machine ran out of a resource.
  [/(EMFILE|ENFILE|EADDRNOTAVAIL|EACCES|EPERM)$/, 'our_side'],
  [/^connect/, 'unreachable'],
  [/CERT_HAS_EXPIRED$/, 'tls_expired'],
  [/(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, 'tls_wrong_host'],
  [/^tls: (EPROTO$|ERR_SSL_|TLS_)/, 'tls_handshake'],
  [/^tls/, 'tls_untrusted'],
  [/INFORMATIONAL_FLOOD$/, 'too_much_before_status'],
  [/^timeout/, 'timeout'],
  [/^target_refused/, 'target_refused'],
];

const STATUSES: Readonly<Record<number, Cause>> = {
  401: 'unauthorized',
  403: 'unauthorized',
  404: 'not_found',
  405: 'not_found',
  410: 'gone',
  429: 'rate_limited',
};

/** The cause of an attempt's outcome. A response decides over a later error, unless the attempt timed out. */
export function causeOf({ outcome, statusCode, error }: FailedAttempt): Cause {
  if (outcome === 'delivered') return 'delivered';
  if (outcome === 'interrupted') return 'interrupted';
  if (statusCode !== null && !/^timeout/.test(error ?? '')) return ofStatus(statusCode);
  return CODES.find(([pattern]) => pattern.test(error ?? ''))?.[1] ?? 'protocol';
}

function ofStatus(code: number): Cause {
  if (code >= 200 && code < 300) return 'protocol';
  if (code >= 300 && code < 400) return 'redirect';
  return STATUSES[code] ?? (code < 500 ? 'client_error' : 'server_error');
}

const you = (summary: string, cure: string): CauseInWords => ({ owner: 'you', summary, cure });
const us = (summary: string, cure: string): CauseInWords => ({ owner: 'us', summary, cure });

/** Each cause in words: what it is, who can fix it, and how. */
export const IN_WORDS: Readonly<Record<Cause, CauseInWords>> = {
  delivered: { owner: 'nobody', summary: 'Your server accepted the event.', cure: 'No action needed.' },
  not_tried: { owner: 'nobody', summary: 'The event has not been sent yet.', cure: 'No action needed.' },
  dns: you('The host in your URL has no address.', 'Check the host and its DNS records.'),
  dns_unanswered: {
    owner: 'network',
    summary: 'No name server returned an address for your host.',
    cure: 'Check that the name servers of your domain respond from everywhere, including for DNSSEC. If they do, no action is needed: we retry automatically.',
  },
  refused: you(
    'Nothing is listening at the host and port of your URL.',
    'Start your server, or open its port in the firewall.',
  ),
  reset: you(
    'Your server, or a proxy in front of it, closed the connection before it responded.',
    'Check the logs of your server and its load balancer at {time}. Respond before you close the connection.',
  ),
  unreachable: {
    owner: 'network',
    summary: 'We could not connect to your server.',
    cure: 'Check that its address is reachable from the internet over IPv4 and IPv6, and that no firewall blocks us.',
  },
  tls_expired: you(
    "Your server's TLS certificate has expired.",
    'Renew the certificate, and automate its renewal.',
  ),
  tls_wrong_host: you(
    "Your server's TLS certificate is for another host.",
    'Serve a certificate for the host in your URL, or correct the URL.',
  ),
  tls_untrusted: you(
    "Your server's TLS certificate is not trusted.",
    'Serve the full certificate chain of a public CA. Self-signed certificates are rejected.',
  ),
  tls_handshake: you(
    'The TLS handshake with your server failed.',
    'Support TLS 1.3, or TLS 1.2 with an ECDHE cipher suite. Keep the certificate chain below 32 KB.',
  ),
  too_much_before_status: you(
    'Your server sent more than 100 informational responses (1xx), or more than 64 KB of them.',
    'Send the final response first.',
  ),
  timeout: you(
    'Your server did not respond in time.',
    'Store the event, return 2xx immediately, and process it afterwards.',
  ),
  redirect: you(
    'Your server returned a redirect. We do not follow redirects.',
    'Set the URL of the endpoint to the final address.',
  ),
  unauthorized: you(
    'Your server rejected the request. Most often it checks the signature with the wrong secret.',
    "Compare its signing secret with this endpoint's secret, especially after a rotation. The signature doctor finds the mistake.",
  ),
  not_found: you(
    'Your server has no such path, or does not accept POST there.',
    'Correct the path in the URL, or accept POST at this path.',
  ),
  gone: you(
    'Your server returned 410: the URL is gone permanently.',
    'Set a new URL, or delete the endpoint.',
  ),
  rate_limited: you(
    'Your server rate-limited us.',
    'Exempt webhooks from the limit, or store events and return 2xx immediately.',
  ),
  client_error: you(
    'Your server rejected the event.',
    'Read the response of the attempt, fix the cause, and resend the delivery.',
  ),
  server_error: you('Your server returned an error (5xx).', "Check your server's log at {time}."),
  protocol: you("We could not read your server's response as HTTP.", 'Check which program serves the URL.'),
  target_refused: you(
    'The URL leads to a private address or is not HTTPS. We do not send to such URLs.',
    'Use a public HTTPS URL.',
  ),
  our_side: us(
    'Our worker could not open any connection and did not reach your server.',
    'No action needed. Contact us if this continues.',
  ),
  interrupted: us(
    'Our worker stopped during the attempt. The attempt does not count.',
    'No action needed. We retry automatically.',
  ),
  switched_off: you(
    'The endpoint is switched off, so we hold its events.',
    'Switch it on when your server is ready.',
  ),
};
