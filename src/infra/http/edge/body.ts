import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import secureJson from 'secure-json-parse';
import { AppError, type FieldError, ValidationFailed } from '../../../common/errors/index.js';
import { findJsonExcess, type JsonExcess } from '../../../common/json-shape.js';
import { JSON_LIMITS, MAX_BODY_BYTES } from './contract.js';
import { FORM_TYPE } from './head-checks.js';

/** Makes the type of the port's bodies the only one with a parser, and installs that parser (D9). */
export function useBodyParser(fastify: FastifyInstance, bodies: 'json' | 'form'): void {
  const [type, parse] =
    bodies === 'json' ? (['application/json', parseJsonBody] as const) : ([FORM_TYPE, parseForm] as const);
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser(type, async (_request: FastifyRequest, payload: IncomingMessage) =>
    parse(await readBody(payload)),
  );
}

/** The fields of an HTML form; of a repeated name, the last value. */
function parseForm(bytes: Buffer): Readonly<Record<string, string>> {
  return Object.fromEntries(new URLSearchParams(bytes.toString('utf8')));
}

/**
 * Copies each piece of a body into one buffer. Fastify would keep the pieces, and a body sent as single bytes would
 * take 150 times its size.
 */
function readBody(payload: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  // The head check has already refused a larger body.
  const body = Buffer.allocUnsafe(Number(payload.headers['content-length'] ?? MAX_BODY_BYTES));
  let length = 0;
  const take = (piece: Buffer): void => {
    if (length + piece.length <= body.length) return void (length += piece.copy(body, length));
    payload.off('data', take);
    reject(new AppError('payload_too_large'));
  };
  payload
    .on('data', take)
    .once('end', () => resolve(body.subarray(0, length)))
    .once('error', reject);
  return promise;
}

/**
 * The value of a JSON body; undefined for an empty one. A byte order mark at the start is skipped, as RFC 8259 allows.
 * If a name is repeated, the last value counts.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) {
    throw new ValidationFailed([{ pointer: '', code: 'invalid_utf8', message: 'must be well-formed UTF-8' }]);
  }
  const text = bytes.toString('utf8');
  // Checked before parsing: 64 KB of nested or many elements would block every other call.
  const excess = findJsonExcess(text, JSON_LIMITS);
  if (excess) throw new ValidationFailed([EXCESS[excess]]);
  const value = parse(text);
  const violation = findViolation(value);
  if (violation) throw new ValidationFailed([violation]);
  return value;
}

function parse(text: string): unknown {
  try {
    return secureJson.parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // The parser's message quotes the body.
    throw new AppError('invalid_json');
  }
}

const EXCESS: Readonly<Record<JsonExcess, FieldError>> = {
  depth: { pointer: '', code: 'too_deep', message: `must be nested at most ${JSON_LIMITS.depth} deep` },
  names: { pointer: '', code: 'too_many_keys', message: `must have at most ${JSON_LIMITS.names} names` },
  elements: {
    pointer: '',
    code: 'too_many_elements',
    message: `must have at most ${JSON_LIMITS.elements} elements in its lists`,
  },
};

/** A place in the body, linked to the root, so that the text of a pointer is built only for a violation. */
interface Place {
  readonly value: unknown;
  readonly key: string;
  readonly parent: Place | null;
}

/** A longer pointer would repeat the body rather than point into it. */
const MAX_POINTER_LENGTH = 200;

/** Finds a NUL or lone surrogate in a text or name, or a number that is too large to be represented. */
function findViolation(body: unknown): FieldError | null {
  const pending: Place[] = [{ value: body, key: '', parent: null }];
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    const { value } = place;
    if (typeof value !== 'object' || value === null) {
      const violation = checkScalar(place);
      if (violation) return violation;
      continue;
    }
    const keys = Object.keys(value);
    const violation = checkNames(place, keys);
    if (violation) return violation;
    for (const key of keys)
      pending.push({ value: (value as Record<string, unknown>)[key], key, parent: place });
  }
  return null;
}

function checkNames(place: Place, names: readonly string[]): FieldError | null {
  if (names.every(isCleanText)) return null;
  return violationAt(place, 'invalid_text', 'must have names of well-formed text without U+0000');
}

function checkScalar(place: Place): FieldError | null {
  const { value } = place;
  if (typeof value === 'string' && !isCleanText(value)) {
    return violationAt(place, 'invalid_text', 'must be well-formed text without U+0000');
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return violationAt(place, 'out_of_range', 'must be a number nearer to zero');
  }
  return null;
}

/** PostgreSQL can store neither lone surrogates nor U+0000. */
function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

function violationAt(place: Place | null, code: string, message: string): FieldError {
  let pointer = '';
  for (let step = place; step?.parent; step = step.parent) {
    pointer = `/${step.key.replaceAll('~', '~0').replaceAll('/', '~1')}${pointer}`;
  }
  return { pointer: pointer.length > MAX_POINTER_LENGTH ? '' : pointer, code, message };
}
