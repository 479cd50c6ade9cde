import { type AnswerObject, valueAt } from '../upstream/index.js';

/** An error code, also where it is written as a number; null when there is none. Never throws. */
export function codeAt(object: AnswerObject, key: string): string | null {
  const code = valueAt(object, key);
  if (typeof code === 'number') return String(code);
  return typeof code === 'string' && code !== '' ? code : null;
}
