import { ProviderOutcomeUnknown } from '../esim-provider.js';

/** A parsed JSON object of unknown content. */
export type AnswerObject = Readonly<Record<string, unknown>>;

/** An answer has not the form that its contract says. Nothing of it is used; the outcome counts as unknown. */
export class UpstreamAnswerInvalid extends ProviderOutcomeUnknown {
  constructor(readonly path: string) {
    super(new Error(`the answer has no usable ${path}`));
    this.name = 'UpstreamAnswerInvalid';
  }
}

/** Longer texts are no field of any wholesaler, and PostgreSQL takes neither NUL nor half a surrogate pair. */
const MAX_TEXT_LENGTH = 4_096;

/** @throws UpstreamAnswerInvalid when `value` is no object. */
export function asObject(value: unknown, path = 'object'): AnswerObject {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new UpstreamAnswerInvalid(path);
  return value as AnswerObject;
}

/** The field's value; undefined when it is missing. Never a value of the prototype. */
export function valueAt(object: AnswerObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** @throws UpstreamAnswerInvalid */
export function objectAt(object: AnswerObject, key: string): AnswerObject {
  return asObject(valueAt(object, key), key);
}

/** Null when missing or null. @throws UpstreamAnswerInvalid for anything else than an object */
export function objectOrNullAt(object: AnswerObject, key: string): AnswerObject | null {
  return orNull(object, key, objectAt);
}

/** A text that is not empty. @throws UpstreamAnswerInvalid */
export function textAt(object: AnswerObject, key: string): string {
  const value = valueAt(object, key);
  if (typeof value !== 'string' || value === '' || !isStorable(value)) throw new UpstreamAnswerInvalid(key);
  return value;
}

/** Null when missing, null or empty. @throws UpstreamAnswerInvalid for anything else than a text */
export function textOrNullAt(object: AnswerObject, key: string): string | null {
  return valueAt(object, key) === '' ? null : orNull(object, key, textAt);
}

/** A safe integer. @throws UpstreamAnswerInvalid */
export function integerAt(object: AnswerObject, key: string): number {
  const value = valueAt(object, key);
  if (!Number.isSafeInteger(value)) throw new UpstreamAnswerInvalid(key);
  return value as number;
}

/** A safe integer of zero or more: an amount, a count. @throws UpstreamAnswerInvalid */
export function countAt(object: AnswerObject, key: string): number {
  const value = integerAt(object, key);
  if (value < 0) throw new UpstreamAnswerInvalid(key);
  return value;
}

/** Null when missing or null. @throws UpstreamAnswerInvalid for anything else than an integer of zero or more */
export function countOrNullAt(object: AnswerObject, key: string): number | null {
  return orNull(object, key, countAt);
}

/** A finite number, as of `dataGB: 0.5`; never for money. @throws UpstreamAnswerInvalid */
export function numberAt(object: AnswerObject, key: string): number {
  const value = valueAt(object, key);
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new UpstreamAnswerInvalid(key);
  return value;
}

/** @throws UpstreamAnswerInvalid */
export function booleanAt(object: AnswerObject, key: string): boolean {
  const value = valueAt(object, key);
  if (typeof value !== 'boolean') throw new UpstreamAnswerInvalid(key);
  return value;
}

/** @throws UpstreamAnswerInvalid */
export function arrayAt(object: AnswerObject, key: string): readonly unknown[] {
  const value = valueAt(object, key);
  if (!Array.isArray(value)) throw new UpstreamAnswerInvalid(key);
  return value;
}

/** Empty when missing or null. @throws UpstreamAnswerInvalid for anything else than a list */
export function arrayOrEmptyAt(object: AnswerObject, key: string): readonly unknown[] {
  return orNull(object, key, arrayAt) ?? [];
}

/**
 * A time in ISO 8601 with its offset, with or without the colon (`+0000`); a time without one is UTC.
 * @throws UpstreamAnswerInvalid
 */
export function instantAt(object: AnswerObject, key: string): Date {
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)(Z|[+-]\d{2}:?\d{2})?$/.exec(
    textAt(object, key),
  );
  const offset = (match?.[2] ?? 'Z').replace(/^([+-]\d{2})(\d{2})$/, '$1:$2');
  const instant = new Date(`${match?.[1]}${offset}`);
  if (!match || Number.isNaN(instant.getTime())) throw new UpstreamAnswerInvalid(key);
  return instant;
}

/** Null when missing, null or empty. @throws UpstreamAnswerInvalid */
export function instantOrNullAt(object: AnswerObject, key: string): Date | null {
  return valueAt(object, key) === '' ? null : orNull(object, key, instantAt);
}

function orNull<T>(
  object: AnswerObject,
  key: string,
  read: (object: AnswerObject, key: string) => T,
): T | null {
  return valueAt(object, key) == null ? null : read(object, key);
}

function isStorable(text: string): boolean {
  return text.length <= MAX_TEXT_LENGTH && text.isWellFormed() && !text.includes('\0');
}
