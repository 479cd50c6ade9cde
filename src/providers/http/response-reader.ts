import { withoutControls } from '../../common/plain-text.js';
import { type ProviderCancelStatus, ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';

/** A parsed JSON object of unknown content. */
export type ResponseObject = Readonly<Record<string, unknown>>;

/** A response violates its contract. None of it is used, and the outcome counts as unknown. */
export class ProviderResponseInvalid extends ProviderOutcomeUnknown {
  constructor(readonly path: string) {
    super(new Error(`the answer has no usable ${path}`));
    this.name = 'ProviderResponseInvalid';
  }
}

/** No provider field is longer, and PostgreSQL accepts neither NUL nor half a surrogate pair. */
const MAX_TEXT_LENGTH = 4_096;

/** @throws ProviderResponseInvalid when `value` is not an object */
export function asObject(value: unknown, path = 'object'): ResponseObject {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new ProviderResponseInvalid(path);
  return value as ResponseObject;
}

/** The field's value; undefined when it is missing. Ignores the prototype. */
export function valueAt(object: ResponseObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** @throws ProviderResponseInvalid */
export function objectAt(object: ResponseObject, key: string): ResponseObject {
  return asObject(valueAt(object, key), key);
}

/** Null when missing or null. @throws ProviderResponseInvalid for anything other than an object */
export function objectOrNullAt(object: ResponseObject, key: string): ResponseObject | null {
  return orNull(object, key, objectAt);
}

/**
 * A nonempty text without control characters, because partners see titles and operator names.
 * @throws ProviderResponseInvalid
 */
export function textAt(object: ResponseObject, key: string): string {
  const value = valueAt(object, key);
  if (typeof value !== 'string' || value === '' || !isStorable(value)) throw new ProviderResponseInvalid(key);
  return withoutControls(value);
}

/** Null when missing, null or empty. @throws ProviderResponseInvalid for anything other than text */
export function textOrNullAt(object: ResponseObject, key: string): string | null {
  return valueAt(object, key) === '' ? null : orNull(object, key, textAt);
}

/** A safe integer. @throws ProviderResponseInvalid */
export function integerAt(object: ResponseObject, key: string): number {
  const value = valueAt(object, key);
  if (!Number.isSafeInteger(value)) throw new ProviderResponseInvalid(key);
  return value as number;
}

/** A nonnegative safe integer: an amount or a count. @throws ProviderResponseInvalid */
export function countAt(object: ResponseObject, key: string): number {
  const value = integerAt(object, key);
  if (value < 0) throw new ProviderResponseInvalid(key);
  return value;
}

/** Null when missing or null. @throws ProviderResponseInvalid for anything other than a nonnegative integer */
export function countOrNullAt(object: ResponseObject, key: string): number | null {
  return orNull(object, key, countAt);
}

/** A finite number such as `dataGB: 0.5`; never for money. @throws ProviderResponseInvalid */
export function numberAt(object: ResponseObject, key: string): number {
  const value = valueAt(object, key);
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new ProviderResponseInvalid(key);
  return value;
}

const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/;

/**
 * An optional counter: a finite number, or one as text. Null for everything else, because the rest of the response is
 * useful without it.
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

/** Empty when missing or null. @throws ProviderResponseInvalid for anything other than a list */
export function arrayOrEmptyAt(object: ResponseObject, key: string): readonly unknown[] {
  return orNull(object, key, arrayAt) ?? [];
}

/**
 * An ISO 8601 time; the offset may lack its colon (`+0000`). A time without an offset is UTC.
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

/** Null when `read` throws ProviderResponseInvalid. @throws any other error from `read` */
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

/** Why one of several lookups found nothing: no response, or an unreadable one. */
export type NoResponseReason = 'silent' | 'unreadable';

const ASK_AGAIN_MS = 5_000;
/** Share of the provider's time limit that a lookup made of several calls may use. */
const LOOKUP_SHARE = 0.7;

/** Some lookups of an order got a response and others did not: the provider is not silent, so look again. */
export class PartialResponse extends ProviderUnavailable {
  constructor(cause?: unknown) {
    super(ASK_AGAIN_MS, cause);
  }
}

/**
 * A signal that ends a lookup before its provider's deadline, so that the responses received until then are not lost.
 * For read-only calls only.
 */
export function lookupTimeout(signal: AbortSignal, timeoutMs: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(timeoutMs * LOOKUP_SHARE)]);
}

/** Handles the error of one lookup among several. @throws the error itself if no query was sent, unless time was up */
export function toNoResponseReason(error: unknown, signal: AbortSignal): NoResponseReason {
  if (error instanceof ProviderResponseInvalid) return 'unreadable';
  if (error instanceof ProviderOutcomeUnknown || signal.aborted) return 'silent';
  throw error;
}

export type SeenCancelStatus = Pick<ProviderCancelStatus, 'providerEsimId'> & {
  readonly cancelStatus: ProviderCancelStatus['cancelStatus'] | NoResponseReason;
};

/**
 * @throws PartialResponse when only some lookups got a response: an eSIM without one may be in use
 * @throws ProviderOutcomeUnknown when none got a readable response
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
