import { type ArgumentMetadata, Injectable, type PipeTransform, ValidationPipe } from '@nestjs/common';
import type { ValidationError } from 'class-validator';
import { type FieldError, NotFound, ValidationFailed } from '../../common/errors/index.js';
import { type IdPrefix, isId } from '../../common/ids.js';

const MAX_REPORTED = 50;

/**
 * The one validation pipe: unknown fields, wrong types and repeated scalars return 400 `validation_failed` (D9).
 * Messages never repeat the submitted value (D6).
 */
@Injectable()
export class StrictValidationPipe extends ValidationPipe {
  /** Query classes that accept an empty query. */
  private readonly validWhenEmpty = new Set<unknown>();

  constructor() {
    super({
      whitelist: true,
      forbidNonWhitelisted: true,
      forbidUnknownValues: true,
      transform: true,
      validationError: { target: false, value: false },
      exceptionFactory: (errors) => new ValidationFailed(toFieldErrors(errors, '')),
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    // Most list calls have no query, and the result of an empty query depends on the class alone.
    if (metadata.type === 'query' && metadata.metatype && isEmpty(value)) {
      return this.emptyQuery(value, metadata, metadata.metatype as new () => unknown);
    }
    return this.check(value, metadata);
  }

  private async emptyQuery(
    value: unknown,
    metadata: ArgumentMetadata,
    Query: new () => unknown,
  ): Promise<unknown> {
    if (this.validWhenEmpty.has(Query)) return new Query();
    const valid = await this.check(value, metadata);
    this.validWhenEmpty.add(Query);
    return valid;
  }

  private async check(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (metadata.type === 'body' && value !== undefined && !isPlainObject(value)) {
      throw new ValidationFailed([
        { pointer: '', code: 'invalid_type', message: 'The body must be a JSON object.' },
      ]);
    }
    try {
      refuseInheritedNames(value);
      return (await super.transform(value, metadata)) as unknown;
    } catch (error) {
      if (!(error instanceof ValidationFailed)) throw error;
      const told = withMissingFields(error, value);
      throw metadata.type === 'query' ? withQueryPointers(told) : told;
    }
  }
}

/**
 * `toString`, `constructor` and similar names exist in every object: class-transformer treats them as inherited and
 * drops them before the whitelist sees them, so they are refused here. Bodies have at most 32 levels.
 */
function refuseInheritedNames(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, child] of Object.entries(value)) {
    if (name in Object.prototype) {
      const message = 'is a reserved name';
      throw new ValidationFailed([{ pointer: `/${name}`, code: 'unknown_field', message }]);
    }
    refuseInheritedNames(child);
  }
}

function isEmpty(value: unknown): boolean {
  for (const _name in value as object) return false;
  return true;
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A missing field violates all of its rules: report it once, as missing. */
function withMissingFields(error: ValidationFailed, value: unknown): ValidationFailed {
  return new ValidationFailed(
    (error.errors ?? []).map((field) =>
      field.code !== 'unknown_field' && field.pointer !== '' && isMissing(value, field.pointer)
        ? { pointer: field.pointer, code: 'required', message: 'is required' }
        : field,
    ),
  );
}

function isMissing(body: unknown, pointer: string): boolean {
  let at = body;
  for (const name of pointer.slice(1).split('/')) {
    if (typeof at !== 'object' || at === null) return false;
    at = (at as Readonly<Record<string, unknown>>)[name.replaceAll('~1', '/').replaceAll('~0', '~')];
    if (at === undefined) return true;
  }
  return false;
}

function withQueryPointers(error: ValidationFailed): ValidationFailed {
  return new ValidationFailed(
    (error.errors ?? []).map((field) => ({ ...field, pointer: field.pointer.replace(/^\//, '?') })),
  );
}

/** Type rules come first: a value of the wrong type also violates size rules, which would be misleading. */
const TYPE_RULES = new Set(['isInt', 'isNumber', 'isString', 'isBoolean', 'isArray', 'isObject']);

/**
 * One error per field, because its first violated rule is enough. At most 50, because a body may have 1,000 wrong
 * names.
 */
function toFieldErrors(errors: readonly ValidationError[], parent: string): FieldError[] {
  const reported = errors.slice(0, MAX_REPORTED).flatMap((error) => {
    const pointer = `${parent}/${escapePointer(error.property)}`;
    const rules = Object.keys(error.constraints ?? {});
    const broken = rules.find((rule) => TYPE_RULES.has(rule)) ?? rules[0];
    const own = broken === undefined ? [] : [toFieldError(pointer, broken, error)];
    return [...own, ...toFieldErrors(error.children ?? [], pointer)];
  });
  return reported.slice(0, MAX_REPORTED);
}

function toFieldError(pointer: string, constraint: string, error: ValidationError): FieldError {
  if (constraint === 'whitelistValidation') {
    // The name is caller text: cut it in the pointer and omit it from the message.
    return {
      pointer: pointer.slice(0, 100),
      code: 'unknown_field',
      message: 'is not a known field',
    };
  }
  return { pointer, code: toSnakeCase(constraint), message: error.constraints?.[constraint] ?? 'Invalid.' };
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** An id in a path; a malformed one is the same 404 as one that never existed (D10, D14). */
export function PathId(prefix: IdPrefix): new () => PipeTransform<string, string> {
  @Injectable()
  class PathIdPipe implements PipeTransform<string, string> {
    transform(value: string): string {
      if (!isId(prefix, value)) throw new NotFound();
      return value;
    }
  }
  return PathIdPipe;
}
