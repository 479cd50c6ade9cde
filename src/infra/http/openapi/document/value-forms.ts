import type { OpenAPIObject, ParameterObject, ReferenceObject, SchemaObject } from '@nestjs/swagger';
import { partsOf } from './bodies.js';
import { type DescribedOperation, parametersOf } from './operation.js';

const MAX_INT32 = 2 ** 31 - 1;

/**
 * Writes values in forms that most generators understand.
 * - An integer that may exceed 32 bits is `int64`. Java and Go would otherwise use 32 bits, which cannot hold 10 GB in
 *   bytes.
 * - The default of a request becomes text and `x-default`. Generators otherwise make the field required, send the
 *   default, or do not compile.
 */
export function useCommonForms(document: OpenAPIObject, operations: readonly DescribedOperation[]): void {
  for (const parameter of operations.flatMap(parametersOf)) {
    for (const schema of inlineSchemas(parameter.schema)) {
      widen(schema);
      moveDefault(schema, parameter);
    }
  }
  const { schemas = {}, headers = {} } = document.components ?? {};
  const described = [
    ...Object.values(schemas),
    ...Object.values(headers).flatMap((header) => ('schema' in header ? (header.schema ?? []) : [])),
  ];
  for (const schema of described.flatMap(inlineSchemas)) {
    widen(schema);
    moveDefault(schema, schema);
  }
}

/** A schema and its inline schemas, without referenced ones. */
function inlineSchemas(schema: SchemaObject | ReferenceObject | undefined): SchemaObject[] {
  if (!schema || '$ref' in schema) return [];
  return [schema, ...partsOf(schema).flatMap(inlineSchemas)];
}

function widen(schema: SchemaObject): void {
  const { type, format, enum: choices, maximum = Infinity } = schema;
  const isInteger = [type].flat().includes('integer');
  if (isInteger && format === undefined && choices === undefined && maximum > MAX_INT32)
    schema.format = 'int64';
}

function moveDefault(
  schema: SchemaObject & { 'x-default'?: unknown },
  described: SchemaObject | ParameterObject,
): void {
  if (schema.default === undefined) return;
  schema['x-default'] = schema.default as unknown;
  const text = `Default: \`${String(schema.default)}\`.`;
  described.description = described.description ? `${described.description} ${text}` : text;
  delete schema.default;
}
