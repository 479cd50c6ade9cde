import { createHmac, timingSafeEqual } from 'node:crypto';
import { randomBase62 } from '../common/base62.js';

const SECRET_PREFIX = 'whsec_';
const SECRET_LENGTH = 40;

/**
 * Creates a signing secret: `whsec_` and 40 base62 characters from a CSPRNG (238 bits), used exactly as shown (D29).
 */
export function newSigningSecret(): string {
  return `${SECRET_PREFIX}${randomBase62(SECRET_LENGTH)}`;
}

/**
 * Signature schemes of an endpoint: the document's headers are always sent, those of Standard Webhooks on request
 * (D49).
 */
export const SIGNATURE_SCHEMES = ['document', 'standard'] as const;
export type SignatureScheme = (typeof SIGNATURE_SCHEMES)[number];

export interface SignatureInput {
  /** Unix seconds of this attempt: receivers reject anything older than 300 s, so a retry needs its own (D29). */
  readonly timestampSeconds: number;
  /** Exactly the bytes that are sent. */
  readonly body: Buffer | string;
  /** Newest first; two during a rotation, otherwise one (D29). */
  readonly secrets: readonly string[];
}

/** The value of `X-Service-Signature`: `t=<unix_seconds>,v1=<hex>`, one `v1` per secret (spec section 6, D29). */
export function signWebhook({ timestampSeconds, body, secrets }: SignatureInput): string {
  const signatures = secrets.map((secret) => `v1=${hexHmac(secret, String(timestampSeconds), body)}`);
  return [`t=${timestampSeconds}`, ...signatures].join(',');
}

/**
 * The headers of Standard Webhooks (D49): `v1,<base64>` over `<id>.<timestamp>.<body>`, one per secret. The key is what
 * its libraries derive from the secret: the 40 characters after `whsec_` decode from base64 to 30 bytes.
 * @param messageId the event's id, the same in every attempt and resend
 */
export function standardHeaders(
  messageId: string,
  { timestampSeconds, body, secrets }: SignatureInput,
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${messageId}.${timestampSeconds}.`).update(body).digest('base64')}`;
  });
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}

export interface VerificationInput {
  /** The received `X-Service-Signature`. */
  readonly header: string;
  /** The raw body as received, before any parsing. */
  readonly body: Buffer | string;
  /** The endpoint's signing secret as shown at registration, prefix included. */
  readonly secret: string;
  /** The receiver's time in Unix seconds; default: now. */
  readonly nowSeconds?: number;
  /** Maximum difference between `t` and now, in seconds, in either direction. */
  readonly toleranceSeconds?: number;
}

const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * Verifies a signature as a receiver does (spec section 6, Signature verification), for partners and tests. True when
 * some `v1` matches and `t` is within the tolerance. Malformed input returns false; it never throws.
 */
export function verifyWebhookSignature(input: VerificationInput): boolean {
  const parsed = parseHeader(input.header);
  if (!parsed) return false;
  const now = input.nowSeconds ?? Math.floor(Date.now() / 1_000);
  const tolerance = input.toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS;
  // `!(<=)` instead of `>`, so that NaN is refused.
  if (!(Math.abs(now - Number(parsed.timestamp)) <= tolerance)) return false;
  const expected = Buffer.from(hexHmac(input.secret, parsed.timestamp, input.body));
  return parsed.signatures.some((signature) => equalInConstantTime(Buffer.from(signature), expected));
}

interface ParsedHeader {
  readonly timestamp: string;
  readonly signatures: readonly string[];
}

function parseHeader(header: string): ParsedHeader | null {
  const parts = header.split(',').map((part) => part.trim());
  const timestamps = valuesOf(parts, 't=');
  const [timestamp] = timestamps;
  if (timestamps.length !== 1 || timestamp === undefined || !/^\d{1,15}$/.test(timestamp)) return null;
  return { timestamp, signatures: valuesOf(parts, 'v1=') };
}

function valuesOf(parts: readonly string[], prefix: string): string[] {
  return parts.filter((part) => part.startsWith(prefix)).map((part) => part.slice(prefix.length));
}

function hexHmac(secret: string, timestamp: string, body: Buffer | string): string {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex');
}

/** Different lengths mean no match (spec section 6); `timingSafeEqual` would throw. */
function equalInConstantTime(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
