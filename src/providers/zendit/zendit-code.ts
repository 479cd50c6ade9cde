import { type ResponseObject, valueAt } from '../http/index.js';

/** An error code, also where it is written as a number; null when there is none. Never throws. */
export function codeAt(object: ResponseObject, key: string): string | null {
  const code = valueAt(object, key);
  if (typeof code === 'number') return String(code);
  return typeof code === 'string' && code !== '' ? code : null;
}
