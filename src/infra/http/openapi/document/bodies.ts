import type { OpenAPIObject, ReferenceObject, SchemaObject } from '@nestjs/swagger';
import type { DescribedOperation } from './operation.js';

/**
 * Makes every request body match its validation: unknown fields are refused (D9), and a body without required fields
 * may be omitted.
 */
export function closeRequestBodies(document: OpenAPIObject, operations: readonly DescribedOperation[]): void {
  for (const [name, fields] of Object.entries(EXACTLY_ONE_OF)) requireExactlyOne(document, name, fields);
  for (const { operation } of operations) {
    const { requestBody } = operation;
    if (!requestBody || '$ref' in requestBody) continue;
    for (const { schema } of Object.values(requestBody.content)) {
      if (!schema) continue;
      closeSchema(document, schema);
      requestBody.required = needsField(resolve(document, schema));
    }
  }
}

/** Whether a field is required, or one of several. */
function needsField({ required = [], minProperties = 0 }: SchemaObject): boolean {
  return required.length > 0 || minProperties > 0;
}

/** Bodies that take exactly one of several fields, which no decorator can express; the first is in the example. */
const EXACTLY_ONE_OF: Readonly<Record<string, readonly [string, ...string[]]>> = {
  ConsumeRequest: ['bytes', 'percent'],
};

/** Limits the number of fields instead of using `oneOf`, which generators turn into types that do not compile. */
function requireExactlyOne(
  document: OpenAPIObject,
  name: string,
  [first]: readonly [string, ...string[]],
): void {
  const schema = document.components?.schemas?.[name];
  if (!schema || '$ref' in schema) return;
  const example: unknown = resolve(document, schema.properties![first]!).example;
  Object.assign(schema, { example: { [first]: example }, minProperties: 1, maxProperties: 1 });
}

/** The schema of a reference. @throws Error when there is none */
export function resolve(document: OpenAPIObject, schema: SchemaObject | ReferenceObject): SchemaObject {
  if (!('$ref' in schema)) return schema;
  const found = document.components?.schemas?.[schema.$ref.slice('#/components/schemas/'.length)];
  if (!found) throw new Error(`${schema.$ref} leads nowhere`);
  return resolve(document, found);
}

function closeSchema(document: OpenAPIObject, schema: SchemaObject | ReferenceObject): void {
  const target = resolve(document, schema);
  if (target.properties) target.additionalProperties ??= false;
  if (isFreeText(target)) target.pattern = target.minLength ? '^[^\\x00]+$' : '^[^\\x00]*$';
  for (const part of partsOf(target)) closeSchema(document, part);
}

/** Schemas of a schema's properties, items and alternatives. */
export function partsOf({
  properties = {},
  items,
  anyOf = [],
  allOf = [],
}: SchemaObject): (SchemaObject | ReferenceObject)[] {
  return [...Object.values(properties), ...anyOf, ...allOf, ...(items ? [items] : [])];
}

/** Whether text has no other constraint: it is stored unchanged, and PostgreSQL text cannot contain U+0000. */
function isFreeText({ type, enum: choices, format, pattern }: SchemaObject): boolean {
  const isString = type === 'string' || (Array.isArray(type) && type.includes('string'));
  return isString && choices === undefined && format === undefined && pattern === undefined;
}

const EXAMPLE_TIME = '2026-11-21T10:00:00.000Z';

/** Whether to show optional fields that have no example of their own. */
export type Completeness = 'shortest' | 'every field';

/** An example of a schema, built from the examples, defaults and first choices of its parts. */
export function exampleOf(
  document: OpenAPIObject,
  schema: SchemaObject | ReferenceObject,
  completeness: Completeness,
): unknown {
  const target = resolve(document, schema);
  if (target.example !== undefined) return target.example as unknown;
  if (target.default !== undefined) return target.default as unknown;
  if (target.enum) return target.enum[0] as unknown;
  const alternatives = target.oneOf ?? target.allOf;
  if (alternatives) return exampleOf(document, alternatives[0]!, completeness);
  // For objects, Swagger turns `nullable` into `anyOf`.
  if (target.anyOf) return null;
  const type = Array.isArray(target.type) ? target.type.at(-1) : target.type;
  if (type === 'null') return null;
  if (type === 'array') return target.items ? [exampleOf(document, target.items, completeness)] : [];
  if (type === 'object') return exampleObject(document, target, completeness);
  return exampleScalar(target, type);
}

function exampleObject(document: OpenAPIObject, schema: SchemaObject, completeness: Completeness): unknown {
  const required = new Set(schema.required);
  const shown = Object.entries(schema.properties ?? {}).filter(
    ([name, property]) =>
      completeness === 'every field' ||
      required.has(name) ||
      resolve(document, property).example !== undefined,
  );
  return Object.fromEntries(
    shown.map(([name, property]) => [name, exampleOf(document, property, completeness)]),
  );
}

function exampleScalar(schema: SchemaObject, type: string | undefined): unknown {
  if (type === 'boolean') return false;
  if (type === 'integer' || type === 'number') return schema.minimum ?? 0;
  return schema.format === 'date-time' ? EXAMPLE_TIME : 'text';
}
