import { createHmac, timingSafeEqual } from 'node:crypto';
import { counted } from './terminal/values.js';

/** The signature headers of one of the two schemes. */
export interface SignatureHeaders {
  /**
   * The signed time in Unix seconds, as text. Null for malformed headers; `wanted` then describes the expected form.
   */
  readonly timestamp: string | null;
  readonly wanted: string;
  readonly signatures: readonly string[];
  readonly sign: (secret: string, body: Buffer | string) => string;
}

export interface SignedRequest {
  readonly headers: SignatureHeaders;
  readonly body: Buffer;
  readonly secret: string;
  readonly nowSeconds: number;
}

export interface Diagnosis {
  readonly valid: boolean;
  /** A code for programs: `valid`, `no_match`, `timestamp_too_old`, … */
  readonly reason: string;
  readonly explanation: string;
}

const TOLERANCE_SECONDS = 300;

/** `X-Service-Signature`: hex over `<t>.<body>`. The key is the secret as displayed. */
export function documentHeaders(header: string): SignatureHeaders {
  const parts = header.split(',').map((part) => part.trim());
  const timestamps = parts.filter((part) => part.startsWith('t=')).map((part) => part.slice(2));
  const timestamp = timestamps.length === 1 ? secondsIn(timestamps[0]) : null;
  return {
    timestamp,
    wanted:
      'The header does not have the form t=<unix seconds>,v1=<hex>. Pass the whole value of X-Service-Signature.',
    signatures: parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3)),
    sign: (secret, body) => createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex'),
  };
}

export interface StandardHeaders {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
}

/**
 * Standard Webhooks: base64 over `<id>.<timestamp>.<body>`. The key is the secret without its prefix, decoded from
 * base64.
 */
export function standardHeaders(headers: StandardHeaders): SignatureHeaders {
  const timestamp = secondsIn(headers.timestamp.trim());
  const parts = headers.signature.split(' ').filter((part) => part.startsWith('v1,'));
  return {
    timestamp,
    wanted:
      'webhook-timestamp must be Unix seconds, and webhook-signature must be v1,<base64>. Pass their whole values.',
    signatures: parts.map((part) => part.slice(3)),
    sign: (secret, body) =>
      createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
        .update(`${headers.id.trim()}.${timestamp}.`)
        .update(body)
        .digest('base64'),
  };
}

function secondsIn(text: string | undefined): string | null {
  return text !== undefined && /^[0-9]{1,15}$/.test(text) ? text : null;
}

/** Checks a signature as documented. If it is wrong, looks for the mistake that explains it. */
export function diagnoseSignature(request: SignedRequest): Diagnosis {
  const { timestamp, wanted, signatures, sign } = request.headers;
  if (timestamp === null || signatures.length === 0) return bad('malformed_header', wanted);
  const matches = (body: Buffer | string, secret: string): boolean =>
    signatures.some((signature) => isSame(signature, sign(secret, body)));
  // Ignore white space around the secret, such as the line break of its file.
  const secret = request.secret.trim();
  if (!matches(request.body, secret)) return mistakeBehind({ ...request, secret }, matches);
  const age = request.nowSeconds - Number(timestamp);
  if (age > TOLERANCE_SECONDS) {
    return bad(
      'timestamp_too_old',
      `It is ${age} s old, and servers must reject it after ${TOLERANCE_SECONDS} s. The secret and the body are correct. To check a webhook that arrived earlier, pass its time of arrival: --at <unix seconds>.`,
    );
  }
  if (age < -TOLERANCE_SECONDS) {
    return bad(
      'timestamp_in_future',
      `Its time is ${-age} s ahead of this check. The secret and the body are correct. Set this machine's clock, or correct --at.`,
    );
  }
  const inPlace = `The signature is correct and ${counted(Math.max(0, age), 'second')} old.`;
  const isPadded = request.secret.replace(/\r?\n$/, '') !== secret;
  const padding = ' The secret has white space around it. Your server must trim it too.';
  return { valid: true, reason: 'valid', explanation: isPadded ? inPlace + padding : inPlace };
}

type Matches = (body: Buffer | string, secret: string) => boolean;

/** Tries common mistakes in turn. The first one that produces the received signature is the explanation. */
function mistakeBehind({ body, secret }: SignedRequest, matches: Matches): Diagnosis {
  const text = body.toString();
  const trimmed = text.replace(/\s+$/, '');
  if (matches(body, `whsec_${secret}`))
    return bad('secret_without_prefix', 'Use the secret with its prefix whsec_.');
  if (matches(trimmed, secret))
    return bad(
      'newline_added',
      'The body ends with white space that was not sent. Verify the bytes exactly as they arrived.',
    );
  if (matches(`${text}\n`, secret))
    return bad(
      'newline_removed',
      'The line break at the end of the body is missing. Verify the bytes exactly as they arrived.',
    );
  const compact = reserialized(text);
  if (compact !== null && compact !== text && matches(compact, secret)) {
    return bad(
      'body_was_parsed',
      'The body was parsed and serialized again. Verify the bytes exactly as they arrived.',
    );
  }
  return bad(
    'no_match',
    'No v1 matches. Check the secret first: it may belong to another endpoint or mode, or predate a rotation. Otherwise the body or the id was changed.',
  );
}

function reserialized(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return null;
  }
}

const bad = (reason: string, explanation: string): Diagnosis => ({ valid: false, reason, explanation });

function isSame(received: string, expected: string): boolean {
  const [a, b] = [Buffer.from(received), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
