import type { FieldError } from '../../../common/errors/index.js';
import { MAX_JSON_DEPTH, MAX_JSON_KEYS } from './limits.js';

/** A place in the body; a chain to the root, so that only a violation pays for the text of its pointer. */
interface Place {
  readonly value: unknown;
  readonly depth: number;
  readonly key: string;
  readonly parent: Place | null;
}

/** A longer pointer would rather repeat the body than point into it. */
const MAX_POINTER_LENGTH = 200;

/**
 * What in a parsed body is against D9: nested deeper than 32, more than 1,000 names in all, a NUL or a lone
 * surrogate in a text or name, a number beyond what can be represented. A stack of its own instead of
 * recursion: the body decides how deep this goes.
 */
export function findViolation(body: unknown): FieldError | null {
  const pending: Place[] = [{ value: body, depth: 1, key: '', parent: null }];
  let names = 0;
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    const { value } = place;
    if (typeof value !== 'object' || value === null) {
      const violation = checkScalar(place);
      if (violation) return violation;
      continue;
    }
    const keys = Object.keys(value);
    if (!Array.isArray(value)) names += keys.length;
    const violation = checkSize(place.depth, names) ?? checkNames(place, keys);
    if (violation) return violation;
    for (const key of keys) {
      pending.push({
        value: (value as Record<string, unknown>)[key],
        depth: place.depth + 1,
        key,
        parent: place,
      });
    }
  }
  return null;
}

function checkSize(depth: number, names: number): FieldError | null {
  if (depth > MAX_JSON_DEPTH) {
    return violationAt(null, 'too_deep', `must be nested at most ${MAX_JSON_DEPTH} deep`);
  }
  if (names > MAX_JSON_KEYS) {
    return violationAt(null, 'too_many_keys', `must have at most ${MAX_JSON_KEYS} names`);
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

/** PostgreSQL stores neither of the two. */
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
