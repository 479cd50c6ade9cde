import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import type { OpenAPIObject } from '@nestjs/swagger';

const DOCUMENT = 'document';

/**
 * Checks values against schemas of one document; a schema is compiled once. What a schema does not name is refused:
 * the document leaves room for fields that clients must ignore, and no answer of today may have one.
 */
export class SchemaChecker {
  /** Each process of tests compiles schemas anew and checks a few values with each: the quickest code is the dearer. */
  private readonly ajv = new Ajv2020({
    strict: false,
    allErrors: false,
    inlineRefs: false,
    code: { optimize: false },
  });
  private readonly compiled = new Map<object, ValidateFunction>();

  constructor(document: OpenAPIObject) {
    formats.default.default(this.ajv);
    // A document is no schema, but has all those that are referred to.
    this.ajv.addSchema(closed(document) as object, DOCUMENT, false, false);
  }

  /** What is wrong with `value`, or null. */
  check(schema: object, value: unknown): string | null {
    let validate = this.compiled.get(schema);
    if (!validate) {
      const text = JSON.stringify(closed(schema)).replaceAll('"$ref":"#/', `"$ref":"${DOCUMENT}#/`);
      validate = this.ajv.compile(JSON.parse(text) as object);
      this.compiled.set(schema, validate);
    }
    return validate(value) ? null : this.ajv.errorsText(validate.errors);
  }
}

/** The same with `additionalProperties: false` in every object schema that names its properties and says nothing else. */
function closed(value: unknown, isPart = false): unknown {
  if (Array.isArray(value)) return value.map((item) => closed(item, isPart));
  if (value === null || typeof value !== 'object') return value;
  const schema = Object.fromEntries(
    // A part of `allOf` sees the properties of the others as well.
    Object.entries(value).map(([key, child]) => [key, closed(child, key === 'allOf')]),
  );
  const isOpen = schema['type'] === 'object' && schema['properties'] && !('additionalProperties' in schema);
  return isOpen && !isPart ? { ...schema, additionalProperties: false } : schema;
}
