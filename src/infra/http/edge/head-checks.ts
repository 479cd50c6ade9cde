import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { AppError, NotFound } from '../../../common/errors/index.js';
import { type EdgeOptions, MAX_BODY_BYTES, MAX_URL_LENGTH } from './contract.js';

type Bodies = NonNullable<EdgeOptions['bodies']>;
type ExpectedHead = Pick<EdgeOptions, 'idempotencyKeyRequired' | 'bodies'>;

export const FORM_TYPE = 'application/x-www-form-urlencoded';
const MEDIA_TYPES: Readonly<Record<Bodies, string>> = { json: 'application/json', form: FORM_TYPE };

const IDEMPOTENCY_KEY = /^[A-Za-z0-9_-]{8,128}$/;

/** Checks the head of an authenticated call for every possible refusal, in the order of D7. */
export function checkHead(request: FastifyRequest, expected: ExpectedHead): AppError | null {
  const { raw } = request;
  return (
    checkHost(raw) ??
    checkExpect(raw.headers.expect) ??
    checkUrl(raw) ??
    checkRoute(request) ??
    (raw.method === 'GET' ? null : checkBodyHead(request, expected))
  );
}

/** RFC 9112 section 3.2: exactly one Host line in HTTP/1.1. Node's own response would lack id and body. */
function checkHost(raw: IncomingMessage): AppError | null {
  if (raw.httpVersionMinor === 0 && raw.httpVersionMajor === 1) return null;
  if (raw.headers.host && countHostLines(raw.rawHeaders) === 1) return null;
  return new AppError('bad_request', {
    detail: 'The request has no Host header, or more than one. Send exactly one.',
  });
}

function countHostLines(rawHeaders: readonly string[]): number {
  let lines = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    // Compare the length first: lower-casing every name of every call would be measurable.
    if (name?.length === 4 && (name === 'Host' || name === 'host' || name.toLowerCase() === 'host')) lines++;
  }
  return lines;
}

function checkExpect(expect: string | undefined): AppError | null {
  if (expect === undefined || expect.toLowerCase() === '100-continue') return null;
  return new AppError('expectation_failed');
}

export function checkUrl(raw: IncomingMessage): AppError | null {
  return (raw.url ?? '').length > MAX_URL_LENGTH ? new AppError('uri_too_long') : null;
}

function checkBodyHead(
  request: FastifyRequest,
  { idempotencyKeyRequired, bodies = 'json' }: ExpectedHead,
): AppError | null {
  const { raw } = request;
  if (hasEmptyParam(request.params)) return new AppError('not_found');
  return (
    checkBody(raw.headers, bodies) ??
    (raw.method === 'POST' && idempotencyKeyRequired !== null
      ? checkIdempotencyKey(raw.headers['idempotency-key'], idempotencyKeyRequired)
      : null)
  );
}

/** Whether the head announces a body. Only then does the content type matter. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = headers['content-length'];
  return length !== undefined && Number(length) > 0;
}

function checkBody(headers: IncomingHttpHeaders, bodies: Bodies): AppError | null {
  if (!announcesBody(headers)) {
    // With a content type, Fastify would look for a parser, and return 415 for an empty text/plain.
    delete headers['content-type'];
    return null;
  }
  return checkMediaType(headers, bodies) ?? checkDeclaredSize(headers['content-length']);
}

function checkDeclaredSize(contentLength: string | undefined): AppError | null {
  if (contentLength === undefined || Number(contentLength) <= MAX_BODY_BYTES) return null;
  return new AppError('payload_too_large', {
    detail: `The body is too large. Send at most ${MAX_BODY_BYTES} bytes.`,
  });
}

/** Node joins repeated lines with a comma, which the pattern does not permit (D17). */
function checkIdempotencyKey(key: string | string[] | undefined, required: boolean): AppError | null {
  if (key === undefined ? !required : typeof key === 'string' && IDEMPOTENCY_KEY.test(key)) return null;
  return new AppError('idempotency_key_required', {
    detail:
      'A POST needs a valid Idempotency-Key. Send exactly one Idempotency-Key header of 8 to 128 letters, digits, - or _.',
  });
}

/** 404 for a path that does not exist, 405 with `Allow` for one that exists for other methods. */
function checkRoute(request: FastifyRequest): AppError | null {
  if (!request.is404) return null;
  const allowed = allowedMethods(request);
  if (allowed.length === 0)
    return new NotFound('This path does not exist. Check its spelling and its version, as in /v1/orders.');
  return new AppError('method_not_allowed', { headers: { allow: allowed.join(', ') } });
}

function allowedMethods({ server, raw }: FastifyRequest): string[] {
  const url = raw.url ?? '';
  return server.supportedMethods.filter((method) => {
    const route = server.findRoute({ method, url });
    return route !== null && !hasEmptyParam(route.params);
  });
}

/** The router matches `/v1/orders//cancel` with `/v1/orders/:id/cancel`; Nest would notice only after the body. */
function hasEmptyParam(params: unknown): boolean {
  const values = params as Readonly<Record<string, string | undefined>>;
  for (const name in values) {
    if (values[name] === '' && name !== '*') return true;
  }
  return false;
}

/** Accepts only the port's uncompressed type in UTF-8 (D9). */
function checkMediaType(headers: IncomingHttpHeaders, bodies: Bodies): AppError | null {
  const type = headers['content-type'];
  const encoding = headers['content-encoding'];
  if (
    type !== undefined &&
    isOfType(type, MEDIA_TYPES[bodies]) &&
    (encoding === undefined || isIdentity(encoding))
  )
    return null;
  return new AppError('unsupported_media_type', {
    detail:
      'The body is not declared as JSON. Send Content-Type: application/json in UTF-8, without a content encoding.',
  });
}

function isIdentity(encoding: string): boolean {
  const name = encoding.trim().toLowerCase();
  return name === '' || name === 'identity';
}

function isOfType(type: string, expected: string): boolean {
  if (type === expected) return true;
  const [mediaType, ...parameters] = type.toLowerCase().split(';');
  return mediaType?.trim() === expected && parameters.every(isAcceptable);
}

function isAcceptable(parameter: string): boolean {
  const text = parameter.trim();
  return text === '' || text === 'charset=utf-8' || text === 'charset="utf-8"';
}
