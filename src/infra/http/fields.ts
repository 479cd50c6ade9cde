import { Transform } from 'class-transformer';
import { IsInt, IsOptional, IsString, Matches, Max, MaxLength, Min, ValidateBy } from 'class-validator';
import { LINE_PATTERN, LINES_PATTERN } from '../../common/plain-text.js';

/** An integer query field; conversion is explicit, never implicit (D9). */
export function QueryInteger(range: { min: number; max: number }): PropertyDecorator {
  return compose(
    Transform(({ value }: { value: unknown }) =>
      typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value,
    ),
    IsInt({ message: 'must be a whole number' }),
    Min(range.min, { message: `must be at least ${range.min}` }),
    Max(range.max, { message: `must be at most ${range.max}` }),
  );
}

/**
 * An RFC 3339 time with a zone, whose UTC instant is in the years 1 to 9999 (D10): the format has no later dates, and
 * PostgreSQL has no year 0. The DTO keeps the text.
 */
export function Rfc3339(): PropertyDecorator {
  return ValidateBy({
    name: 'rfc3339',
    validator: {
      validate: isRfc3339,
      defaultMessage: () =>
        'must be an RFC 3339 time of the years 0001 to 9999 in UTC, such as 2026-11-21T10:00:00.000Z',
    },
  });
}

const RFC_3339 =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

function isRfc3339(value: unknown): boolean {
  if (typeof value !== 'string' || !RFC_3339.test(value)) return false;
  const instantMs = Date.parse(value);
  if (instantMs < FIRST_MS || instantMs > LAST_MS) return false;
  // Date.parse reads 31 February as 3 March: the day must survive the round trip.
  const day = value.slice(0, 10);
  const midnight = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().slice(0, 10) === day;
}

/** Text of 1 to `max` characters without NUL or lone surrogates, for comparisons. */
export function ShortText(max: number): PropertyDecorator {
  return text(max, /^[^\0]+$/, 'must not be empty or contain NUL');
}

/** Stored and displayed text: one line of 1 to `max` characters. Its schema has `LINE_PATTERN`. */
export function SingleLineText(max: number): PropertyDecorator {
  return text(max, LINE, 'must be one line of text without control or direction characters');
}

/** Like `SingleLineText`, with line breaks. Its schema has `LINES_PATTERN`. */
export function MultiLineText(max: number): PropertyDecorator {
  return text(max, LINES, 'must be text without control or direction characters other than line breaks');
}

const LINE = new RegExp(LINE_PATTERN);
const LINES = new RegExp(LINES_PATTERN);

function text(max: number, pattern: RegExp, message: string): PropertyDecorator {
  return compose(
    IsString({ message: 'must be text' }),
    MaxLength(max, { message: `must have at most ${max} characters` }),
    Matches(pattern, { message }),
    ValidateBy({
      name: 'wellFormed',
      validator: {
        validate: (value) => typeof value === 'string' && value.isWellFormed(),
        defaultMessage: () => 'must be well-formed Unicode',
      },
    }),
  );
}

/** A partner's own id of an order or top-up: 1 to 64 printable ASCII characters. */
export function Reference(): PropertyDecorator {
  return compose(
    IsString({ message: 'must be text' }),
    Matches(/^[\x20-\x7e]{1,64}$/, { message: 'must be 1 to 64 printable ASCII characters' }),
  );
}

const METADATA_MAX_PAIRS = 20;
const METADATA_MAX_KEY = 40;
const METADATA_MAX_VALUE = 500;

/** OpenAPI schema of `metadata`; `Metadata` validates it. */
export const METADATA_SCHEMA = {
  type: 'object',
  nullable: true,
  maxProperties: METADATA_MAX_PAIRS,
  // OpenAPI 3.1 has this keyword; Swagger's types do not.
  propertyNames: { type: 'string', minLength: 1, maxLength: METADATA_MAX_KEY },
  additionalProperties: { type: 'string', maxLength: METADATA_MAX_VALUE },
  example: { traveler: 'A-17' },
} as const;

/** At most 20 string pairs, keys of 1 to 40, values of up to 500 characters. */
export function Metadata(): PropertyDecorator {
  return ValidateBy({
    name: 'metadata',
    validator: {
      validate: isMetadata,
      defaultMessage: () =>
        `must be an object of at most ${METADATA_MAX_PAIRS} texts, keys of 1 to ${METADATA_MAX_KEY} and values of up to ${METADATA_MAX_VALUE} characters`,
    },
  });
}

function isMetadata(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const pairs = Object.entries(value);
  return (
    pairs.length <= METADATA_MAX_PAIRS &&
    pairs.every(
      ([key, text]) =>
        key.length >= 1 &&
        key.length <= METADATA_MAX_KEY &&
        typeof text === 'string' &&
        text.length <= METADATA_MAX_VALUE,
    )
  );
}

/** The field may be absent or null. */
export const Optional = IsOptional;

/** Applies several property decorators as one. */
export function compose(...decorators: PropertyDecorator[]): PropertyDecorator {
  return (target, key) => {
    for (const decorate of decorators) decorate(target, key);
  };
}
