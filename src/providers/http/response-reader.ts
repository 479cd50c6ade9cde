import { withoutControls } from '../../common/plain-text.js';
import { type ProviderCancelStatus, ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';

/** A parsed JSON object of unknown content. */
export type ResponseObject = Readonly<Record<string, unknown>>;

/** An answer has not the form that its contract says. Nothing of it is used; the outcome counts as unknown. */
export class ProviderResponseInvalid extends ProviderOutcomeUnknown {
  constructor(readonly path: string) {
    super(new Error(`the answer has no usable ${path}`));
    this.name = 'ProviderResponseInvalid';
  }
}

/** Longer texts are no field of any provider, and PostgreSQL takes neither NUL nor half a surrogate pair. */
const MAX_TEXT_LENGTH = 4_096;

/** @throws ProviderResponseInvalid when `value` is no object. */
export function asObject(value: unknown, path = 'object'): ResponseObject {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new ProviderResponseInvalid(path);
  return value as ResponseObject;
}

/** The field's value; undefined when it is missing. Never a value of the prototype. */
export function valueAt(object: ResponseObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** @throws ProviderResponseInvalid */
export function objectAt(object: ResponseObject, key: string): ResponseObject {
  return asObject(valueAt(object, key), key);
}

/** Null when missing or null. @throws ProviderResponseInvalid for anything else than an object */
export function objectOrNullAt(object: ResponseObject, key: string): ResponseObject | null {
  return orNull(object, key, objectAt);
}

/** A text that is not empty, without controls: titles and operators are shown to partners. @throws ProviderResponseInvalid */
export function textAt(object: ResponseObject, key: string): string {
  const value = valueAt(object, key);
  if (typeof value !== 'string' || value === '' || !isStorable(value)) throw new ProviderResponseInvalid(key);
  return withoutControls(value);
}

/** Null when missing, null or empty. @throws ProviderResponseInvalid for anything else than a text */
export function textOrNullAt(object: ResponseObject, key: string): string | null {
  return valueAt(object, key) === '' ? null : orNull(object, key, textAt);
}

/** A safe integer. @throws ProviderResponseInvalid */
export function integerAt(object: ResponseObject, key: string): number {
  const value = valueAt(object, key);
  if (!Number.isSafeInteger(value)) throw new ProviderResponseInvalid(key);
  return value as number;
}

/** A safe integer of zero or more: an amount, a count. @throws ProviderResponseInvalid */
export function countAt(object: ResponseObject, key: string): number {
  const value = integerAt(object, key);
  if (value < 0) throw new ProviderResponseInvalid(key);
  return value;
}

/** Null when missing or null. @throws ProviderResponseInvalid for anything else than an integer of zero or more */
export function countOrNullAt(object: ResponseObject, key: string): number | null {
  return orNull(object, key, countAt);
}

/** A finite number, as of `dataGB: 0.5`; never for money. @throws ProviderResponseInvalid */
export function numberAt(object: ResponseObject, key: string): number {
  const value = valueAt(object, key);
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new ProviderResponseInvalid(key);
  return value;
}

const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/;

/**
 * A counter that need not be there for the rest of an answer to be of use: a finite number, or the same as text. Null for
 * everything else.
 */
export function figureOrNullAt(object: ResponseObject, key: string): number | null {
  const value = valueAt(object, key);
  const figure = typeof value === 'string' && DECIMAL.test(value.trim()) ? Number(value) : value;
  return typeof figure === 'number' && Number.isFinite(figure) ? figure : null;
}

/** @throws ProviderResponseInvalid */
export function booleanAt(object: ResponseObject, key: string): boolean {
  const value = valueAt(object, key);
  if (typeof value !== 'boolean') throw new ProviderResponseInvalid(key);
  return value;
}

/** @throws ProviderResponseInvalid */
export function arrayAt(object: ResponseObject, key: string): readonly unknown[] {
  const value = valueAt(object, key);
  if (!Array.isArray(value)) throw new ProviderResponseInvalid(key);
  return value;
}

/** Empty when missing or null. @throws ProviderResponseInvalid for anything else than a list */
export function arrayOrEmptyAt(object: ResponseObject, key: string): readonly unknown[] {
  return orNull(object, key, arrayAt) ?? [];
}

/**
 * A time in ISO 8601 with its offset, with or without the colon (`+0000`); a time without one is UTC.
 * @throws ProviderResponseInvalid
 */
export function instantAt(object: ResponseObject, key: string): Date {
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)(Z|[+-]\d{2}:?\d{2})?$/.exec(
    textAt(object, key),
  );
  const offset = (match?.[2] ?? 'Z').replace(/^([+-]\d{2})(\d{2})$/, '$1:$2');
  const instant = new Date(`${match?.[1]}${offset}`);
  if (!match || Number.isNaN(instant.getTime())) throw new ProviderResponseInvalid(key);
  return instant;
}

/** Null when missing, null or empty. @throws ProviderResponseInvalid */
export function instantOrNullAt(object: ResponseObject, key: string): Date | null {
  return valueAt(object, key) === '' ? null : orNull(object, key, instantAt);
}

function orNull<T>(
  object: ResponseObject,
  key: string,
  read: (object: ResponseObject, key: string) => T,
): T | null {
  return valueAt(object, key) == null ? null : read(object, key);
}

/** Null where `read` finds an answer of another form than the contract has. @throws whatever else it throws */
export function usableOrNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProviderResponseInvalid) return null;
    throw error;
  }
}

function isStorable(text: string): boolean {
  return text.length <= MAX_TEXT_LENGTH && text.isWellFormed() && !text.includes('\0');
}

/** Why one of several looks gave nothing: it was not answered, or the answer makes no sense. */
export type NoResponseReason = 'silent' | 'unreadable';

const ASK_AGAIN_MS = 5_000;
/** The part of a call's deadline that a look of many calls may take. */
const LOOKUP_SHARE = 0.7;

/** Something of an order is known and something else was not answered: no silence about the order, so ask again. */
export class PartialResponse extends ProviderUnavailable {
  constructor(cause?: unknown) {
    super(ASK_AGAIN_MS, cause);
  }
}

/**
 * A signal that ends a look before its provider's deadline does: what was answered until then must not be lost with
 * what was not. Only for calls that ask.
 */
export function lookupTimeout(signal: AbortSignal, timeoutMs: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(timeoutMs * LOOKUP_SHARE)]);
}

/** For `catch` of one look among several. @throws what says that it was not asked, unless its time was over */
export function toNoResponseReason(error: unknown, signal: AbortSignal): NoResponseReason {
  if (error instanceof ProviderResponseInvalid) return 'unreadable';
  if (error instanceof ProviderOutcomeUnknown || signal.aborted) return 'silent';
  throw error;
}

/** What a look at one eSIM gave. */
export type SeenCancelStatus = Pick<ProviderCancelStatus, 'providerEsimId'> & {
  readonly cancelStatus: ProviderCancelStatus['cancelStatus'] | NoResponseReason;
};

/**
 * @throws PartialResponse when some eSIMs were answered and others not: one of those may be in use
 * @throws ProviderOutcomeUnknown when there is no word on any
 */
export function toCancelStatuses(seen: readonly SeenCancelStatus[]): readonly ProviderCancelStatus[] {
  const count = (wanted: NoResponseReason): number =>
    seen.filter(({ cancelStatus }) => cancelStatus === wanted).length;
  if (seen.length > 0 && count('silent') + count('unreadable') === seen.length)
    throw new ProviderOutcomeUnknown();
  if (count('silent') > 0) throw new PartialResponse();
  return seen.map(({ providerEsimId, cancelStatus }) => ({
    providerEsimId,
    cancelStatus: cancelStatus === 'silent' || cancelStatus === 'unreadable' ? 'unknown' : cancelStatus,
  }));
}
