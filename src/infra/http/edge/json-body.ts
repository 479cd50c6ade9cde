import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import secureJson from 'secure-json-parse';
import { AppError, ValidationFailed } from '../../../common/errors/index.js';
import { findViolation } from './json-limits.js';
import { MAX_BODY_BYTES } from './limits.js';

/** Makes `application/json` the only type that has a parser, and this the parser (D9). */
export function useJsonParser(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES },
    (_request, bytes, done) => {
      try {
        done(null, parseJsonBody(bytes));
      } catch (error) {
        done(error as AppError);
      }
    },
  );
}

/**
 * The value of a JSON body; undefined for an empty one. A byte order mark at the start is skipped, as RFC 8259
 * allows. Of a repeated name the last one counts.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) {
    throw new ValidationFailed([{ pointer: '', code: 'invalid_utf8', message: 'must be well-formed UTF-8' }]);
  }
  const value = parse(bytes.toString('utf8'));
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
