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

/** The cause of an attempt's end. The response goes before the error, because it came first. */
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
  delivered: { owner: 'nobody', summary: 'Your receiver has taken it.', cure: 'Nothing is to be done.' },
  not_tried: { owner: 'nobody', summary: 'It has not been tried yet.', cure: 'Nothing is to be done.' },
  dns: you('The host of your URL has no address.', "Check the URL's host and its DNS records."),
  dns_unanswered: {
    owner: 'network',
    summary: 'No name server told us the address of your host.',
    cure: 'Check that the name servers of your domain answer from everywhere, DNSSEC included. If they do, it passes by itself.',
  },
  refused: you(
    'Nothing listens at the host and port of your URL.',
    'Start your receiver, or open its port in the firewall.',
  ),
  reset: you(
    'Your receiver, or something before it, cut the connection before it answered.',
    'Look into the log of your receiver and its load balancer at this time; answer before you close.',
  ),
  unreachable: {
    owner: 'network',
    summary: 'No connection to your receiver came about.',
    cure: 'Check that its address can be reached from the internet, by IPv4 and IPv6, and that no firewall drops us.',
  },
  tls_expired: you(
    "Your receiver's TLS certificate has expired.",
    'Renew the certificate, and have it renewed by itself.',
  ),
  tls_wrong_host: you(
    "Your receiver's TLS certificate is for another host.",
    'Serve a certificate that names the host of your URL, or correct the URL.',
  ),
  tls_untrusted: you(
    "Your receiver's TLS certificate is not accepted.",
    'Serve the whole chain of a public authority; self-signed ones are refused.',
  ),
  tls_handshake: you(
    'The TLS handshake with your server failed.',
    'Offer TLS 1.3, or TLS 1.2 with an ECDHE cipher suite. Keep the certificate and its chain below 32 KB.',
  ),
  too_much_before_status: you(
    'Your server sent more than 100 informational responses (1xx), or more than 64 KB of them.',
    'Send the final status line first.',
  ),
  timeout: you(
    'Your receiver did not answer in time.',
    'Store the event and answer 2xx at once; do the work afterwards.',
  ),
  redirect: you(
    'Your receiver redirects; redirects are not followed.',
    'Enter the final address as the URL of the endpoint.',
  ),
  unauthorized: you(
    'Your receiver refused the call: most often it checks the signature with another secret.',
    'Compare its signing secret with this endpoint, an old one after a rotation above all; the signature doctor tells which it is.',
  ),
  not_found: you(
    'Your receiver knows no such path or method.',
    'Correct the path of the URL; it must take POST.',
  ),
  gone: you('Your receiver says that it is gone for good.', 'Enter the new URL, or delete the endpoint.'),
  rate_limited: you(
    'Your receiver limits how often we may call.',
    'Exempt webhooks from the limit, or store events and answer at once.',
  ),
  client_error: you(
    'Your receiver refused the event.',
    'Its answer, below, says why; fix that and send the event again.',
  ),
  server_error: you('Your receiver failed.', 'Look into its log at the time of the attempt.'),
  protocol: you('What your receiver answered is not HTTP that we understand.', 'Check what serves the URL.'),
  target_refused: you(
    'The URL leads to a private address or is not https; such targets are refused.',
    'Use a public https address.',
  ),
  our_side: us(
    'Our process could make no connection to anybody; your receiver was not asked.',
    'Nothing is to be done at your receiver. Tell us if it stays so.',
  ),
  interrupted: us(
    'Our process ended during the attempt. It does not count.',
    'Nothing is to be done: it is tried again by itself.',
  ),
  switched_off: you(
    'The endpoint is switched off, so events are held.',
    'Switch it on when your receiver is ready.',
  ),
};
