import { readFileSync } from 'node:fs';
import type { OpenAPIObject } from '@nestjs/swagger';
import { describe, expect, it } from 'vitest';
import { undocumented } from '../harness/documented-answers.js';
import { readOperations, successOf } from './reader.js';
import { SchemaChecker } from './schemas.js';

const document = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8')) as OpenAPIObject;

describe('an answer', () => {
  const operation = readOperations(document, 'partner').find(
    ({ name }) => name === 'partner GET /v1/esims/{id}',
  )!;
  const { schema, example } = successOf(operation)[0]!.content['application/json']!;
  const body = example as { readonly data: object };
  const headers = new Headers({ 'content-type': 'application/json; charset=utf-8' });
  const faultOf = (answer: unknown) =>
    undocumented('GET', '/v1/esims/esim_1?x=1', { status: 200, headers, body: answer });

  it('as the document has it is taken', () => {
    expect(faultOf(body)).toBeNull();
  });

  it('with a field that no schema names is refused, on top and below: it may be what was sealed', () => {
    for (const answer of [
      { ...body, extra: 1 },
      { ...body, data: { ...body.data, activation_sealed: 'v1.k.x' } },
    ]) {
      expect(new SchemaChecker(document).check(schema!, answer)).toMatch(/additional properties/);
      expect(faultOf(answer)).toMatch(/GET \/v1\/esims\/\{id\}: the body is not as documented/);
    }
  });
});
