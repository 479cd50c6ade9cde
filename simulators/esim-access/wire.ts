import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Amounts on this wire are integers of 1/10,000 USD, data is in bytes, times are UTC without a colon in the offset. */
export interface Credentials {
  readonly accessCode: string;
  readonly secretKey: string;
}

/** A business error: HTTP 200 with `success: false`. */
export class WireError extends Error {
  readonly code: string;

  constructor(code: string, text: string) {
    super(text);
    this.code = code;
  }
}

/** Both forms of "no error" occur on the wire. */
export function successBody(obj: unknown): string {
  return JSON.stringify({ success: true, errorCode: Math.random() < 0.5 ? '0' : null, errorMsg: null, obj });
}

/** The documented tables say `errorMessage` and use text for `success`; the real wire mostly does not. */
export function errorBody(code: string, text: string, { numericCodes }: { numericCodes: boolean }): string {
  const asInTheTables = Math.random() < 0.3;
  const errorCode = numericCodes ? Number(code) : code;
  return JSON.stringify(
    asInTheTables
      ? { success: 'false', errorCode, errorMessage: text, obj: null }
      : { success: false, errorCode, errorMsg: text, obj: null },
  );
}

export function wireTime(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d{3}Z$/, '+0000');
}

/** Times of callbacks end in `Z`. */
export function callbackTime(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** Parses a request's ISO 8601 time. @throws WireError */
export function parseWireTime(text: unknown): number {
  const atMs = typeof text === 'string' ? Date.parse(text.replace(/([+-]\d{2})(\d{2})$/, '$1:$2')) : NaN;
  if (Number.isNaN(atMs)) throw new WireError('200008', 'time format');
  return atMs;
}

/**
 * The access code alone is enough, as on live accounts. A signature, if present, must be right, in hex of either case.
 * @throws WireError otherwise
 */
export function checkSignature(headers: IncomingHttpHeaders, body: Buffer, credentials: Credentials): void {
  const [code, id, timestamp, signature] = [
    'rt-accesscode',
    'rt-requestid',
    'rt-timestamp',
    'rt-signature',
  ].map((name) => headers[name]);
  if (typeof code !== 'string') throw new WireError('000101', 'header RT-AccessCode is null');
  if (code !== credentials.accessCode) throw new WireError('101003', 'access code');
  if (id === undefined && timestamp === undefined && signature === undefined) return;
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signature !== 'string')
    throw new WireError('000101', 'signature headers are null');
  if (Math.abs(Date.now() - Number(timestamp)) > 300_000) throw new WireError('101001', 'timestamp expired');
  const expected = createHmac('sha256', credentials.secretKey)
    .update(timestamp + id + code)
    .update(body)
    .digest();
  const given = Buffer.from(signature, 'hex');
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new WireError('101003', 'signature');
}
