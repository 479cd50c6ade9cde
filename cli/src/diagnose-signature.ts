import { createHmac, timingSafeEqual } from 'node:crypto';

export interface SignedRequest {
  readonly header: string;
  readonly body: Buffer;
  readonly secret: string;
  readonly nowSeconds: number;
}

export interface Diagnosis {
  readonly valid: boolean;
  /** A word for programs: `valid`, `no_match`, `timestamp_too_old`, … */
  readonly reason: string;
  readonly explanation: string;
}

const TOLERANCE_SECONDS = 300;

/** Checks a signature as the document says, and where it is wrong looks for the mistake that explains it. */
export function diagnoseSignature(request: SignedRequest): Diagnosis {
  const parts = request.header.split(',').map((part) => part.trim());
  const timestamps = parts.filter((part) => part.startsWith('t=')).map((part) => part.slice(2));
  const signatures = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3));
  const [timestamp = ''] = timestamps;
  if (timestamps.length !== 1 || !/^[0-9]{1,15}$/.test(timestamp) || signatures.length === 0) {
    return bad('malformed_header', 'The header is not t=<unix seconds>,v1=<hex>. Pass its whole value.');
  }
  const matches = (body: Buffer | string, secret: string): boolean =>
    signatures.some((signature) => isSame(signature, hmac(secret, timestamp, body)));
  if (!matches(request.body, request.secret)) return mistakeBehind(request, matches);
  const age = request.nowSeconds - Number(timestamp);
  if (age > TOLERANCE_SECONDS)
    return bad('timestamp_too_old', `The signature is right, and ${age} s old; 300 are allowed.`);
  if (age < -TOLERANCE_SECONDS) {
    return bad(
      'timestamp_in_future',
      `The signature is right, and its time is ${-age} s ahead: is this clock right?`,
    );
  }
  return { valid: true, reason: 'valid', explanation: `The signature is right, ${age} s old.` };
}

type Matches = (body: Buffer | string, secret: string) => boolean;

/** The mistakes that people make most, each tried out: the first that makes the signature right is it. */
function mistakeBehind({ body, secret }: SignedRequest, matches: Matches): Diagnosis {
  const text = body.toString();
  const trimmed = text.replace(/\s+$/, '');
  if (secret !== secret.trim() && matches(body, secret.trim())) {
    return bad('secret_with_whitespace', 'The secret has white space around it. Remove it.');
  }
  if (matches(body, `whsec_${secret}`))
    return bad('secret_without_prefix', 'Use the secret with its prefix whsec_.');
  if (matches(trimmed, secret))
    return bad('newline_added', 'The body has white space at its end that was not sent.');
  if (matches(`${text}\n`, secret))
    return bad('newline_removed', 'A line end at the end of the body was removed.');
  const compact = reserialized(text);
  if (compact !== null && compact !== text && matches(compact, secret)) {
    return bad('body_was_parsed', 'The body was parsed and written again. Verify the bytes that arrived.');
  }
  return bad(
    'no_match',
    'No v1 matches: another secret (of another endpoint or mode, or before a rotation), or another body.',
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

function hmac(secret: string, timestamp: string, body: Buffer | string): string {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex');
}

function isSame(received: string, expected: string): boolean {
  const [a, b] = [Buffer.from(received), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
