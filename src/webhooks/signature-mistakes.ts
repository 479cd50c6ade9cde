import { createHmac } from 'node:crypto';
import { findJsonExcess } from '../common/json-shape.js';

/** `t` and every `v1` of an `X-Service-Signature` (spec section 6). */
export interface Signature {
  readonly timestamp: number;
  readonly values: readonly string[];
}

/** A receiver's mistake with the body, the header or the secret. */
export type Mistake =
  | 'signature_changed'
  | 'timestamp_missing'
  | 'whitespace_changed'
  | 'reserialized_json'
  | 'wrong_charset'
  | 'secret_without_prefix'
  | 'secret_decoded';

/** Enough for the signatures of a rotation; each is compared with every candidate. */
const MAX_HEADER_LENGTH = 1_024;

/** Null when the header is not of the form `t=<seconds>,v1=<hex>`, or is longer than 1,024 characters. */
export function parseSignature(header: string): Signature | null {
  if (header.length > MAX_HEADER_LENGTH) return null;
  const parts = header.split(',').map((part) => part.trim());
  const times = parts.filter((part) => part.startsWith('t=')).map((part) => part.slice(2));
  const values = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3));
  if (times.length !== 1 || !/^\d{1,12}$/.test(times[0]!) || values.length === 0) return null;
  return { timestamp: Number(times[0]), values };
}

/** Accepts bytes or text. The values are already public, so a comparison in constant time is unnecessary. */
export function matches(signature: Signature, secret: string | Buffer, body: string | Buffer): boolean {
  return signature.values.includes(hmac(secret, `${signature.timestamp}.`, body));
}

function hmac(secret: string | Buffer, before: string, body: string | Buffer): string {
  return createHmac('sha256', secret).update(before).update(body).digest('hex');
}

/**
 * Finds the mistake in the body or header as given: the signature matches the original, but not this version. Null when
 * no known mistake explains it.
 */
export function mistakeOfReceipt(signature: Signature, secret: string, body: string): Mistake | null {
  const lower = { ...signature, values: signature.values.map(unquoted) };
  if (matches(lower, secret, body)) return 'signature_changed';
  if (trimmedOf(body).some((text) => matches(signature, secret, text))) return 'whitespace_changed';
  const compact = compactOf(body);
  if (compact !== null && matches(signature, secret, compact)) return 'reserialized_json';
  if (misreadOf(body).some((bytes) => matches(signature, secret, bytes))) return 'wrong_charset';
  return mistakeWithSecret(signature, secret, body);
}

/**
 * Finds the mistake that produced the receiver's own value from a correct header and body, by trying each known one.
 * Null when none matches: the receiver then used a different secret.
 * @param own the computed value, parsed like a sent one
 */
export function mistakeOfComputation(
  sent: Signature,
  own: Signature,
  secret: string,
  body: string,
): Mistake | null {
  // The code computed the right value, but compared it with a wrong one.
  if (own.values.some((value) => sent.values.includes(value))) return 'signature_changed';
  if (own.values.includes(hmac(secret, '', body))) return 'timestamp_missing';
  if ([`${body}\n`, `${body}\r\n`, body.trim()].some((text) => matches(own, secret, text)))
    return 'whitespace_changed';
  for (const text of printedAnew(body)) if (matches(own, secret, text)) return 'reserialized_json';
  const bytes = Buffer.from(body);
  const misread = [bytes.toString('latin1'), new TextDecoder('windows-1252').decode(bytes)];
  if (misread.some((text) => text !== body && matches(own, secret, text))) return 'wrong_charset';
  return mistakeWithSecret(own, secret, body);
}

function mistakeWithSecret(signature: Signature, secret: string, body: string): Mistake | null {
  const bare = secret.replace(/^whsec_/, '');
  if (matches(signature, bare, body)) return 'secret_without_prefix';
  return matches(signature, Buffer.from(bare, 'base64'), body) ? 'secret_decoded' : null;
}

const unquoted = (value: string): string => value.toLowerCase().replace(/["']/g, '');

/** Normalizes a printed digest: hexadecimal in either case, `v1=` prefix, or base64. */
export function asHex(computed: string): string {
  const value = computed.trim().replace(/^(v1|sha256)=/i, '');
  return /^[A-Za-z0-9+/]{43}=$/.test(value) ? Buffer.from(value, 'base64').toString('hex') : unquoted(value);
}

/** Our bodies have neither a byte order mark nor a trailing newline, but another sender's body may have lost one. */
function trimmedOf(body: string): readonly string[] {
  const trimmed = body.replace(/^\uFEFF/, '').trim();
  return [trimmed, `${trimmed}\n`, `${trimmed}\r\n`].filter((text) => text !== body);
}

/** Our bodies are compact JSON, so this restores a body that was pretty-printed. Null if it is not JSON. */
function compactOf(body: string): string | null {
  const value = parseSmall(body);
  return value === undefined ? null : JSON.stringify(sortLikeEvent(value));
}

/**
 * The texts that common JSON printers produce: indented, with Python's spaces, with sorted keys, with escaped letters.
 * A generator, because all of them together take many times the body's memory.
 */
function* printedAnew(body: string): Generator<string> {
  const value = parseSmall(body);
  if (value === undefined) return;
  for (const each of [value, sortKeys(value)]) {
    for (const print of PRINTERS) {
      const text = print(each);
      const escaped = text.replace(/[^\0-\x7f]+/g, escapeUnits);
      yield text;
      yield escaped;
      // PHP escapes slashes.
      yield text.replaceAll('/', String.raw`\/`);
      yield escaped.replaceAll('/', String.raw`\/`);
    }
  }
}

const PRINTERS: readonly ((value: unknown) => string)[] = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 2),
  (value) => JSON.stringify(value, null, 4),
  spaced,
];

function escapeUnits(text: string): string {
  let escaped = '';
  for (let i = 0; i < text.length; i++)
    escaped += String.raw`\u` + text.charCodeAt(i).toString(16).padStart(4, '0');
  return escaped;
}

/** Python's `json.dumps`: a space after every colon and comma. */
function spaced(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}: ${spaced(each)}`)
    .join(', ')}}`;
}

function sortKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sortKeys);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sortKeys(each)]));
}

/** Several times our largest event. Printing larger JSON from a request would block the event loop. */
const MAX_PRINTED_LENGTH = 16_384;
const PRINTED_LIMITS = { depth: 32, names: 1_000, elements: 1_000 };

/** Undefined for text that is not JSON, or too large for one of our bodies. */
function parseSmall(body: string): unknown {
  if (body.length > MAX_PRINTED_LENGTH || findJsonExcess(body, PRINTED_LIMITS)) return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

const EVENT_KEYS = ['id', 'type', 'created_at', 'data'];

/** Restores the envelope's key order after a library has sorted the keys. */
function sortLikeEvent(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const event = value as Record<string, unknown>;
  const known = EVENT_KEYS.filter((key) => key in event);
  const others = Object.keys(event).filter((key) => !EVENT_KEYS.includes(key));
  return Object.fromEntries([...known, ...others].map((key) => [key, event[key]]));
}

/** Byte value of every Windows-1252 character, which covers all 256 bytes. */
const WINDOWS_1252: ReadonlyMap<string, number> = new Map(
  Array.from(
    new TextDecoder('windows-1252').decode(Uint8Array.from({ length: 256 }, (_, byte) => byte)),
    (character, byte) => [character, byte],
  ),
);

/** Recovers the bytes of UTF-8 that was decoded as Latin-1 or Windows-1252. */
function misreadOf(body: string): readonly Buffer[] {
  if (!/[^\0-\x7f]/.test(body)) return [];
  const asWindows = Array.from(body, (character) => WINDOWS_1252.get(character));
  return [
    ...(/[^\0-\xff]/.test(body) ? [] : [Buffer.from(body, 'latin1')]),
    ...(asWindows.every((byte) => byte !== undefined) ? [Buffer.from(asWindows)] : []),
  ];
}
