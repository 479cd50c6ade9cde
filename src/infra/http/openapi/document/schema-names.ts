import type { OpenAPIObject, ReferenceObject, SchemaObject } from '@nestjs/swagger';
import { type DescribedOperation, METHODS, successOf } from './operation.js';

const PREFIX = '#/components/schemas/';

/**
 * Names the schemas for readers of generated clients. `OrderResponse` becomes `Order`. A class `…Dto` becomes
 * `…Request` if it is a body, and `…Input` inside a body: `PlaceOrderRequest`, `MoneyInput`.
 * @throws Error when two classes would get the same name
 */
export function withSchemaNames(document: OpenAPIObject): OpenAPIObject {
  const bodies = bodyNames(document);
  const names = new Map<string, string>();
  for (const name of Object.keys(document.components?.schemas ?? {})) {
    const given = publicName(name, bodies.has(name));
    if ([...names.values()].includes(given)) throw new Error(`two schemas would be called ${given}`);
    names.set(name, given);
  }
  const renamed = JSON.stringify(document).replaceAll(
    /"#\/components\/schemas\/([^"]+)"/g,
    (_match, name: string) => `"${PREFIX}${names.get(name) ?? name}"`,
  );
  const result = JSON.parse(renamed) as OpenAPIObject;
  const schemas = Object.entries(result.components?.schemas ?? {});
  result.components = {
    ...result.components,
    schemas: Object.fromEntries(schemas.map(([name, schema]) => [names.get(name) ?? name, schema])),
  };
  return result;
}

function publicName(name: string, isBody: boolean): string {
  return name.replace(/Response$/, '').replace(/Dto$/, isBody ? 'Request' : 'Input');
}

function bodyNames(document: OpenAPIObject): Set<string> {
  const bodies = Object.values(document.paths).flatMap((item) =>
    METHODS.flatMap((method) => item[method]?.requestBody ?? []),
  );
  return new Set(
    bodies.flatMap((body) =>
      'content' in body ? Object.values(body.content).flatMap(({ schema }) => nameOf(schema) ?? []) : [],
    ),
  );
}

/**
 * Makes each envelope a component: `OrderResponse` contains one `Order`, `OrderPage` a list of them.
 * @throws Error when two envelopes with the same name differ
 */
export function nameEnvelopes(document: OpenAPIObject, operations: readonly DescribedOperation[]): void {
  const schemas = ((document.components ??= {}).schemas ??= {});
  for (const { operation } of operations) {
    for (const media of Object.values(successOf(operation).response.content ?? {})) {
      const name = envelopeName(media.schema);
      if (!media.schema || name === null) continue;
      if (schemas[name] && JSON.stringify(schemas[name]) !== JSON.stringify(media.schema))
        throw new Error(`two envelopes would be called ${name}`);
      schemas[name] = media.schema;
      media.schema = { $ref: `${PREFIX}${name}` };
    }
  }
}

function envelopeName(schema: SchemaObject | ReferenceObject | undefined): string | null {
  const data = schema && 'properties' in schema ? schema.properties?.['data'] : undefined;
  if (!data) return null;
  const list = nameOf('items' in data ? data.items : undefined);
  if (list !== null) return `${list}Page`;
  const one = nameOf(data);
  return one === null ? null : `${one}Response`;
}

function nameOf(schema: SchemaObject | ReferenceObject | undefined): string | null {
  return schema && '$ref' in schema ? schema.$ref.slice(PREFIX.length) : null;
}
