import type { EsimEvent } from './types.js';

/** Why a webhook was rejected. */
export type WebhookRefusal =
  | 'no_signature'
  | 'malformed_signature'
  | 'no_match'
  | 'timestamp_too_old'
  | 'timestamp_in_future'
  | 'body_was_parsed'
  | 'invalid_body';

const WORDS: Readonly<Record<WebhookRefusal, string>> = {
  no_signature:
    'The request has neither X-Service-Signature nor webhook-signature. It is not a webhook of this service, or a proxy dropped the header. Return 401.',
  malformed_signature:
    'The signature header is malformed. Pass the headers unchanged. X-Service-Signature has the form t=<unix seconds>,v1=<hex>.',
  no_match:
    'No signature matches. The secret belongs to another endpoint, or the body was changed. `esim verify` shows which.',
  timestamp_too_old:
    'The signature is correct, but older than the tolerance. It is a replay, or your clock is ahead. Return 401, and check your clock.',
  timestamp_in_future:
    'The signature is correct, but its time is ahead of your clock by more than the tolerance. Return 401, and check your clock.',
  body_was_parsed:
    'The body is already parsed. Pass the raw body as text or bytes, because parsing and serializing JSON changes its bytes.',
  invalid_body: 'The signature is correct, but the body is not an event. Report it to support.',
};

export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';

  constructor(readonly reason: WebhookRefusal) {
    super(WORDS[reason]);
  }
}

/** A header value in a CloudFront event (Lambda@Edge). */
interface HeaderEntry {
  readonly key?: string;
  readonly value: string;
}
type HeaderValue = string | HeaderEntry | readonly (string | HeaderEntry)[] | null | undefined;

/**
 * Headers in any form that runtimes and frameworks use: an object with a `get` method (`Headers`, Azure Functions,
 * `Map`), a record with names in any case (Node's `request.headers`, API Gateway, Lambda@Edge), pairs of name and
 * value, or Node's flat `rawHeaders`.
 */
export type WebhookHeaders =
  | { get(name: string): HeaderValue }
  | Iterable<readonly [name: string, value: HeaderValue]>
  | readonly string[]
  | Readonly<Record<string, HeaderValue>>;

export interface UnwrapOptions {
  /** Maximum difference between the signature's time and now, in either direction; default 300 s. */
  readonly toleranceSeconds?: number;
  /** Unix seconds; defaults to the current time. */
  readonly nowSeconds?: number;
}

interface Signed {
  readonly timestamp: string;
  readonly signatures: readonly Uint8Array<ArrayBuffer>[];
  /** The signed text that precedes the body. */
  readonly prefix: string;
  readonly keyOf: (secret: string) => Uint8Array<ArrayBuffer>;
}

const TOLERANCE_SECONDS = 300;
const encoder = new TextEncoder();

/**
 * Verifies a webhook and returns its event. Uses `X-Service-Signature` or, without it, the headers of Standard
 * Webhooks. During a rotation, pass both secrets. WebCrypto compares signatures in constant time.
 * @param secret surrounding quotes and white space, such as the line break at the end of a file, are ignored
 * @throws WebhookVerificationError with the reason; TypeError for an empty secret or missing headers, which are not the
 * sender's fault
 */
export async function unwrapWebhook(
  rawBody: string | ArrayBufferView | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, nowSeconds = Math.floor(Date.now() / 1_000) }: UnwrapOptions = {},
): Promise<EsimEvent> {
  const secrets = secretsOf(secret);
  const body = bytesOf(rawBody);
  const signed = readHeaders(headers);
  if (!(await someMatches(signed, body, secrets))) throw new WebhookVerificationError('no_match');
  const ageSeconds = nowSeconds - Number(signed.timestamp);
  if (!(ageSeconds <= toleranceSeconds)) throw new WebhookVerificationError('timestamp_too_old');
  if (!(-ageSeconds <= toleranceSeconds)) throw new WebhookVerificationError('timestamp_in_future');
  return parseEvent(body);
}

/** Reports an unset environment variable separately, because "wrong signature" would mislead the caller. */
function secretsOf(secret: string | readonly string[]): readonly string[] {
  // During a rotation, one of the secrets may be empty. Use the others.
  const secrets = [secret].flat().map((each) => unquoted(String(each ?? '').trim()));
  const filled = secrets.filter(Boolean);
  if (filled.length > 0) return filled;
  throw new TypeError(
    'The signing secret is empty. Pass the secret of the endpoint, and check that ESIM_WEBHOOK_SECRET is set.',
  );
}

/** Removes quotes, which environment files often contain and not every reader strips. No secret contains quotes. */
function unquoted(secret: string): string {
  return /^(["'])(.*)\1$/.exec(secret)?.[2]?.trim() ?? secret;
}

function bytesOf(body: unknown): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return encoder.encode(body);
  // Read the bytes behind any kind of view. Copy them, so that no other thread shares them.
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
  // Not `instanceof`: test runners use another realm, and browsers may lack SharedArrayBuffer.
  if (/^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(body)))
    return new Uint8Array(body as ArrayBuffer).slice();
  throw new WebhookVerificationError('body_was_parsed');
}

function readHeaders(headers: WebhookHeaders): Signed {
  const find = headerFinder(headers);
  const own = find('x-service-signature');
  if (own !== null) return readOwn(own);
  const standard = find('webhook-signature');
  if (standard === null) throw new WebhookVerificationError('no_signature');
  return readStandard(standard, find('webhook-id'), find('webhook-timestamp'));
}

/** `t=<unix seconds>,v1=<hex>[,v1=<hex>]` over `<t>.<body>`. The key is the secret as displayed. */
function readOwn(header: string): Signed {
  const parts = header.split(',').map((each) => each.trim());
  const timestamps = parts.filter((each) => each.startsWith('t=')).map((each) => each.slice(2));
  const hex = parts.filter((each) => each.startsWith('v1=')).map((each) => each.slice(3));
  const signatures = hex.filter((each) => /^[0-9a-f]{64}$/.test(each)).map(fromHex);
  const timestamp = timestampOf(timestamps.length === 1 ? timestamps[0] : undefined);
  return { timestamp, signatures, prefix: `${timestamp}.`, keyOf: (secret) => encoder.encode(secret) };
}

/**
 * `v1,<base64>[ v1,<base64>]` over `<id>.<timestamp>.<body>`. The key is the part after `whsec_`, decoded from base64.
 */
function readStandard(header: string, id: string | null, given: string | null): Signed {
  const base64 = header.split(' ').filter((each) => each.startsWith('v1,'));
  const signatures = base64.flatMap((each) => fromBase64(each.slice(3)) ?? []);
  const timestamp = timestampOf(given ?? undefined);
  if (id === null) throw new WebhookVerificationError('malformed_signature');
  const keyOf = (secret: string): Uint8Array<ArrayBuffer> =>
    fromBase64(secret.replace(/^whsec_/, '')) ?? new Uint8Array();
  return { timestamp, signatures, prefix: `${id}.${timestamp}.`, keyOf };
}

function timestampOf(value: string | undefined): string {
  if (value === undefined || !/^\d{1,15}$/.test(value))
    throw new WebhookVerificationError('malformed_signature');
  return value;
}

async function someMatches(
  { signatures, prefix, keyOf }: Signed,
  body: Uint8Array<ArrayBuffer>,
  secrets: readonly string[],
): Promise<boolean> {
  const text = encoder.encode(prefix);
  const message = new Uint8Array(text.length + body.length);
  message.set(text);
  message.set(body, text.length);
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  let matches = false;
  for (const bytes of secrets.map(keyOf)) {
    // Skip keys that could not be decoded, because WebCrypto would throw its own error for an empty key.
    if (bytes.length === 0) continue;
    const key = await crypto.subtle.importKey('raw', bytes, hmac, false, ['verify']);
    for (const signature of signatures)
      if (await crypto.subtle.verify('HMAC', key, signature, message)) matches = true;
  }
  return matches;
}

function parseEvent(body: Uint8Array<ArrayBuffer>): EsimEvent {
  try {
    const event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as EsimEvent;
    if (typeof event.id === 'string' && typeof event.type === 'string') return event;
  } catch {
    // Reported below.
  }
  throw new WebhookVerificationError('invalid_body');
}

/** Finds all values of a header by name and joins them as HTTP does; null if there are none. */
type FindHeader = (name: string) => string | null;

function headerFinder(headers: WebhookHeaders): FindHeader {
  if (typeof headers !== 'object' || headers === null)
    throw new TypeError(
      'The headers are missing. Pass the headers of the request, for example request.headers.',
    );
  const getter = 'get' in headers && typeof headers.get === 'function' ? headers : null;
  // Read the headers once, because an iterator can be consumed only once.
  const pairs = pairsOf(headers);
  return (name) => {
    const got = (getter as { get(name: string): HeaderValue } | null)?.get(name);
    const values = got == null ? pairs.filter(([key]) => key === name).map(([, value]) => value) : [got];
    const texts = values.flat().filter((value) => value != null);
    // Some gateways forward the same header in two spellings.
    return texts.length === 0 ? null : [...new Set(texts.map((each) => once(textOf(each))))].join(',');
  };
}

function textOf(value: string | HeaderEntry): string {
  return typeof value === 'object' && 'value' in value ? value.value : String(value);
}

/** Some proxies repeat a header, and the next one joins both values. */
function once(text: string): string {
  for (const separator of [',', ', ']) {
    const half = text.slice(0, Math.floor((text.length - separator.length) / 2));
    if (half !== '' && text === half + separator + half) return half;
  }
  return text;
}

/** Returns pairs with lower-case names. */
function pairsOf(headers: object): [name: string, value: HeaderValue][] {
  const items: unknown[] =
    Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : Object.entries(headers);
  const pairs = items.every(Array.isArray)
    ? (items as unknown as [unknown, HeaderValue][])
    : items.flatMap((item, at) => (at % 2 === 0 ? [[item, items[at + 1]] as [unknown, HeaderValue]] : []));
  return pairs.map(([name, value]) => [String(name).toLowerCase(), value]);
}

function fromHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g)!, (pair) => parseInt(pair, 16));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}
