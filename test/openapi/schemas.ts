import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import type { OpenAPIObject } from '@nestjs/swagger';

const DOCUMENT = 'document';

/**
 * Validates values against schemas of one document, and compiles each schema once. It refuses unknown fields: the
 * document allows new fields that clients must ignore, but no current response may have one.
 */
export class SchemaChecker {
  /**
   * Each test process compiles the schemas and checks few values, so fast compilation matters more than fast
   * validation.
   */
  private readonly ajv = new Ajv2020({
    strict: false,
    allErrors: false,
    inlineRefs: false,
    code: { optimize: false },
  });
  private readonly compiled = new Map<object, ValidateFunction>();

  constructor(document: OpenAPIObject) {
    formats.default.default(this.ajv);
    // The document is not a schema, but contains all referenced ones.
    this.ajv.addSchema(closed(document) as object, DOCUMENT, false, false);
  }

  /** The fault of `value`, or null. */
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

/** Adds `additionalProperties: false` to every object schema that names properties and does not set it. */
function closed(value: unknown, isPart = false): unknown {
  if (Array.isArray(value)) return value.map((item) => closed(item, isPart));
  if (value === null || typeof value !== 'object') return value;
  const schema = Object.fromEntries(
    // Each part of `allOf` also sees the properties of the others.
    Object.entries(value).map(([key, child]) => [key, closed(child, key === 'allOf')]),
  );
  const isOpen = schema['type'] === 'object' && schema['properties'] && !('additionalProperties' in schema);
  return isOpen && !isPart ? { ...schema, additionalProperties: false } : schema;
}
