export const MAX_KEPT_HEADERS = 50;
export const MAX_HEADER_VALUE_BYTES = 1_024;
export const MAX_KEPT_HEADERS_BYTES = 8 * 1_024;
export const REDACTED = '[redacted]';

/** Headers whose values give access to something: the log keeps that they were there. */
const SECRET_NAME = /cookie|authori[sz]ation|authentication-info|token|secret|session|password|jwt|key/;

/**
 * The headers of a receiver's answer for the log: lower-case names, repeated ones joined, values as safe text, secrets
 * redacted. What does not fit in the caps is left out. The caps count bytes as received, and as UTF-8 for the total.
 * @param rawHeaders name, value, name, value, as Node gives them (Latin-1)
 */
export function keptHeaders(rawHeaders: readonly string[]): Readonly<Record<string, string>> {
  const kept = new Map<string, string>();
  for (const [name, value] of joined(rawHeaders)) {
    if (kept.size === MAX_KEPT_HEADERS) break;
    kept.set(name, SECRET_NAME.test(name) ? REDACTED : safeValue(value));
  }
  // `fromEntries` takes a header named `__proto__` for what it is.
  return Object.fromEntries(withinTotal(kept));
}

function joined(rawHeaders: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const before = values.get(name);
    values.set(name, before === undefined ? rawHeaders[i + 1]! : `${before}, ${rawHeaders[i + 1]!}`);
  }
  return values;
}

function safeValue(latin1: string): string {
  const bytes = Buffer.from(latin1, 'latin1');
  return toSafeText(bytes.subarray(0, MAX_HEADER_VALUE_BYTES), bytes.length > MAX_HEADER_VALUE_BYTES);
}

function withinTotal(headers: ReadonlyMap<string, string>): [string, string][] {
  let size = 0;
  return [...headers].filter(([name, value]) => {
    const cost = Buffer.byteLength(name) + Buffer.byteLength(value);
    if (size + cost > MAX_KEPT_HEADERS_BYTES) return false;
    size += cost;
    return true;
  });
}

/**
 * Foreign bytes as text that PostgreSQL takes: invalid UTF-8 becomes U+FFFD, NUL is removed. A character that the
 * cap has cut in two is dropped.
 */
export function toSafeText(bytes: Buffer, wasCut: boolean): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: wasCut });
  return text.replaceAll('\0', '');
}
