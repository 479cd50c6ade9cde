import { createHmac } from 'node:crypto';

/** `t` and every `v1` of an `X-Service-Signature` (spec section 6). */
export interface Signature {
  readonly timestamp: number;
  readonly values: readonly string[];
}

/** A mistake with the body, the header or the secret that receivers make. */
export type Mistake =
  | 'signature_changed'
  | 'timestamp_missing'
  | 'whitespace_changed'
  | 'reserialized_json'
  | 'wrong_charset'
  | 'secret_without_prefix'
  | 'secret_decoded';

/** Null when the header is not of the form `t=<seconds>,v1=<hex>`. */
export function parseSignature(header: string): Signature | null {
  const parts = header.split(',').map((part) => part.trim());
  const times = parts.filter((part) => part.startsWith('t=')).map((part) => part.slice(2));
  const values = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3));
  if (times.length !== 1 || !/^\d{1,12}$/.test(times[0]!) || values.length === 0) return null;
  return { timestamp: Number(times[0]), values };
}

/** Over bytes or text; the values are public by now, so their comparison need not take constant time. */
export function matches(signature: Signature, secret: string | Buffer, body: string | Buffer): boolean {
  return signature.values.includes(hmac(secret, `${signature.timestamp}.`, body));
}

function hmac(secret: string | Buffer, before: string, body: string | Buffer): string {
  return createHmac('sha256', secret).update(before).update(body).digest('hex');
}

/**
 * What was done to the body that is at hand, or to the header: the signature is right for what the body was, and not for
 * what it is. Null when no mistake gives that.
 */
export function mistakeOfReceipt(signature: Signature, secret: string, body: string): Mistake | null {
  const lower = { ...signature, values: signature.values.map(unquoted) };
  if (matches(lower, secret, body)) return 'signature_changed';
  if (trimmedOf(body).some((text) => matches(signature, secret, text))) return 'whitespace_changed';
  if (compactOf(body).some((text) => matches(signature, secret, text))) return 'reserialized_json';
  if (misreadOf(body).some((bytes) => matches(signature, secret, bytes))) return 'wrong_charset';
  return mistakeWithSecret(signature, secret, body);
}

/**
 * What gives the value that the receiver's own code computed, while header and body are right: the same mistakes the
 * other way round. Null when none of them does, which leaves another secret.
 * @param own the computed value as if it had been sent
 */
export function mistakeOfComputation(
  sent: Signature,
  own: Signature,
  secret: string,
  body: string,
): Mistake | null {
  // The code has computed what was sent, and compared it with something else.
  if (own.values.some((value) => sent.values.includes(value))) return 'signature_changed';
  if (own.values.includes(hmac(secret, '', body))) return 'timestamp_missing';
  if ([`${body}\n`, `${body}\r\n`, body.trim()].some((text) => matches(own, secret, text)))
    return 'whitespace_changed';
  if (printedAnew(body).some((text) => matches(own, secret, text))) return 'reserialized_json';
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

/** What a program prints of a digest: hexadecimal in either case, `v1=` before it, or base64. */
export function asHex(computed: string): string {
  const value = computed.trim().replace(/^(v1|sha256)=/i, '');
  return /^[A-Za-z0-9+/]{43}=$/.test(value) ? Buffer.from(value, 'base64').toString('hex') : unquoted(value);
}

/** A body that we sent has neither; one whose sender was another may have had a newline that was trimmed. */
function trimmedOf(body: string): readonly string[] {
  const trimmed = body.replace(/^\uFEFF/, '').trim();
  return [trimmed, `${trimmed}\n`, `${trimmed}\r\n`].filter((text) => text !== body);
}

/** Our bodies are compact: whatever was printed anew, in whatever order of spaces, comes back to that. */
function compactOf(body: string): readonly string[] {
  const value = parsed(body);
  return value === undefined ? [] : [JSON.stringify(sortLikeEvent(value))].filter((text) => text !== body);
}

/** As the usual printers of JSON have it: indented, with Python's blanks, with sorted keys, with escaped letters. */
function printedAnew(body: string): readonly string[] {
  const value = parsed(body);
  if (value === undefined) return [];
  const forms = [value, sortKeys(value)].flatMap((each) => [
    JSON.stringify(each),
    JSON.stringify(each, null, 2),
    JSON.stringify(each, null, 4),
    spaced(each),
  ]);
  const escaped = forms.map((text) => text.replace(/[^\0-\x7f]/g, escapeUnit));
  // PHP escapes slashes.
  const slashed = forms.map((text) => text.replaceAll('/', String.raw`\/`));
  return [...forms, ...escaped, ...slashed, ...escaped.map((text) => text.replaceAll('/', String.raw`\/`))];
}

const escapeUnit = (unit: string): string =>
  String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0');

/** Python's `json.dumps`: a blank behind every colon and comma. */
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

function parsed(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

const EVENT_KEYS = ['id', 'type', 'created_at', 'data'];

/** The envelope's own order of keys, which a library that sorts them has changed. */
function sortLikeEvent(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const event = value as Record<string, unknown>;
  const known = EVENT_KEYS.filter((key) => key in event);
  const others = Object.keys(event).filter((key) => !EVENT_KEYS.includes(key));
  return Object.fromEntries([...known, ...others].map((key) => [key, event[key]]));
}

/** The byte of every character of Windows-1252, which reads all 256. */
const WINDOWS_1252: ReadonlyMap<string, number> = new Map(
  Array.from(
    new TextDecoder('windows-1252').decode(Uint8Array.from({ length: 256 }, (_, byte) => byte)),
    (character, byte) => [character, byte],
  ),
);

/** UTF-8 that was read as Latin-1 or Windows-1252 and is now text of it: its characters are the bytes that were sent. */
function misreadOf(body: string): readonly Buffer[] {
  if (!/[^\0-\x7f]/.test(body)) return [];
  const asWindows = Array.from(body, (character) => WINDOWS_1252.get(character));
  return [
    ...(/[^\0-\xff]/.test(body) ? [] : [Buffer.from(body, 'latin1')]),
    ...(asWindows.every((byte) => byte !== undefined) ? [Buffer.from(asWindows)] : []),
  ];
}
