import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import type { OpenAPIObject } from '@nestjs/swagger';

const DOCUMENT = 'document';

/** Checks values against schemas of one document; a schema is compiled once. */
export class SchemaChecker {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: false });
  private readonly compiled = new Map<object, ValidateFunction>();

  constructor(document: OpenAPIObject) {
    formats.default.default(this.ajv);
    // A document is no schema, but has all those that are referred to.
    this.ajv.addSchema(document, DOCUMENT, false, false);
  }

  /** What is wrong with `value`, or null. */
  check(schema: object, value: unknown): string | null {
    let validate = this.compiled.get(schema);
    if (!validate) {
      const text = JSON.stringify(schema).replaceAll('"$ref":"#/', `"$ref":"${DOCUMENT}#/`);
      validate = this.ajv.compile(JSON.parse(text) as object);
      this.compiled.set(schema, validate);
    }
    return validate(value) ? null : this.ajv.errorsText(validate.errors);
  }
}
