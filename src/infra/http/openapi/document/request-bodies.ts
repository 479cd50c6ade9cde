import type { OpenAPIObject, ReferenceObject, SchemaObject } from '@nestjs/swagger';
import type { DescribedOperation } from './operation.js';

/**
 * Makes every request body say what the validation does: unknown fields are refused (D9), and a body none of whose
 * fields is required may be left out.
 */
export function closeRequestBodies(document: OpenAPIObject, operations: readonly DescribedOperation[]): void {
  for (const { operation } of operations) {
    const { requestBody } = operation;
    if (!requestBody || '$ref' in requestBody) continue;
    for (const { schema } of Object.values(requestBody.content)) {
      if (!schema) continue;
      closeSchema(document, schema);
      requestBody.required = (resolve(document, schema).required ?? []).length > 0;
    }
  }
}

/** The schema behind a reference. @throws Error when there is none. */
export function resolve(document: OpenAPIObject, schema: SchemaObject | ReferenceObject): SchemaObject {
  if (!('$ref' in schema)) return schema;
  const found = document.components?.schemas?.[schema.$ref.slice('#/components/schemas/'.length)];
  if (!found) throw new Error(`${schema.$ref} leads nowhere`);
  return resolve(document, found);
}

function closeSchema(document: OpenAPIObject, schema: SchemaObject | ReferenceObject): void {
  const target = resolve(document, schema);
  if (target.properties) target.additionalProperties ??= false;
  const parts = [...Object.values(target.properties ?? {}), ...(target.anyOf ?? []), ...(target.allOf ?? [])];
  for (const part of target.items ? [...parts, target.items] : parts) closeSchema(document, part);
}
