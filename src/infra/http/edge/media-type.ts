import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '../../../common/errors/index.js';

/** Only uncompressed `application/json` in UTF-8 is taken (D9). */
export function checkMediaType(headers: IncomingHttpHeaders): AppError | null {
  const type = headers['content-type'];
  const encoding = headers['content-encoding'];
  if (type !== undefined && isJsonType(type) && (encoding === undefined || isIdentity(encoding))) return null;
  return new AppError('unsupported_media_type', {
    detail: 'Send application/json in UTF-8, without a content encoding.',
  });
}

function isIdentity(encoding: string): boolean {
  const name = encoding.trim().toLowerCase();
  return name === '' || name === 'identity';
}

function isJsonType(type: string): boolean {
  if (type === 'application/json') return true;
  const [mediaType, ...parameters] = type.toLowerCase().split(';');
  return mediaType?.trim() === 'application/json' && parameters.every(isAcceptable);
}

function isAcceptable(parameter: string): boolean {
  const text = parameter.trim();
  return text === '' || text === 'charset=utf-8' || text === 'charset="utf-8"';
}
