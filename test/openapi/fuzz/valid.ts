import type { OpenAPIObject, ReferenceObject, SchemaObject } from '@nestjs/swagger';
import fc from 'fast-check';
import { follow } from '../reader.js';

/** Values that a schema accepts. They match patterns and formats, but are not ids that exist. */
export function validValue(
  document: OpenAPIObject,
  schema: SchemaObject | ReferenceObject,
): fc.Arbitrary<unknown> {
  const target = follow<SchemaObject>(document, schema);
  if (target.enum) return fc.constantFrom(...(target.enum as unknown[]));
  const choices = target.anyOf ?? target.oneOf ?? target.allOf;
  if (choices) return fc.oneof(...choices.map((choice) => validValue(document, choice)));
  const example = target.example as unknown;
  const types = [target.type ?? 'string'].flat();
  const made = fc.oneof(...types.map((type) => ofType(document, target, type)));
  return example === undefined ? made : fc.oneof({ weight: 3, arbitrary: fc.constant(example) }, made);
}

/** The required properties and some of the others, as JSON texts. */
export function validFields(
  document: OpenAPIObject,
  schema: SchemaObject,
): fc.Arbitrary<Map<string, string>> {
  const values = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [
      name,
      validValue(document, property).map((value) => JSON.stringify(value)),
    ]),
  );
  return fc
    .record(values, { requiredKeys: schema.required ?? [] })
    .chain((fields) => withOneChoice(schema, fields, values))
    .map((fields) => new Map<string, string>(Object.entries(fields)));
}

/** Chooses exactly one field for a body that accepts at most one. */
function withOneChoice<Fields extends object>(
  { maxProperties }: SchemaObject,
  fields: Fields,
  values: Readonly<Record<string, fc.Arbitrary<string>>>,
): fc.Arbitrary<Fields> {
  if (maxProperties !== 1) return fc.constant(fields);
  return fc
    .constantFrom(...Object.keys(values))
    .chain((choice) =>
      values[choice]!.filter((value) => value !== 'null').map((value) => ({ [choice]: value }) as Fields),
    );
}

function ofType(document: OpenAPIObject, schema: SchemaObject, type: string): fc.Arbitrary<unknown> {
  const { minimum, maximum } = schema;
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return fc.integer({ min: minimum ?? 0, max: Math.min(maximum ?? 1_000, Number.MAX_SAFE_INTEGER) });
    case 'array':
      return ofArray(document, schema);
    case 'object':
      return ofObject(document, schema);
    default:
      return ofText(schema);
  }
}

function ofArray(document: OpenAPIObject, schema: SchemaObject): fc.Arbitrary<unknown[]> {
  const { items = {}, minItems = 0, uniqueItems } = schema;
  const { contains } = schema as { contains?: { const: unknown } };
  const bounds = { minLength: contains ? 0 : minItems, maxLength: 3 };
  const value = validValue(document, items).filter((each) => !contains || each !== contains.const);
  const others = uniqueItems ? fc.uniqueArray(value, bounds) : fc.array(value, bounds);
  return contains ? others.map((each) => [contains.const, ...each]) : others;
}

function ofObject(document: OpenAPIObject, schema: SchemaObject): fc.Arbitrary<unknown> {
  if (!schema.properties)
    return fc.dictionary(fc.stringMatching(/^[a-z]{1,40}$/), fc.string({ maxLength: 20 }), { maxKeys: 3 });
  return fc.record(
    Object.fromEntries(
      Object.entries(schema.properties).map(([name, value]) => [name, validValue(document, value)]),
    ),
    { requiredKeys: schema.required ?? [] },
  );
}

function ofText(schema: SchemaObject): fc.Arbitrary<string> {
  if (schema.format === 'uri') return fc.webUrl({ validSchemes: ['https'] });
  if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern));
  if (schema.format === 'date-time') {
    return fc
      .date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (schema.format === 'email') return fc.emailAddress();
  return fc.string({
    unit: 'grapheme',
    minLength: schema.minLength ?? 1,
    maxLength: Math.min(schema.maxLength ?? 60, 60),
  });
}
