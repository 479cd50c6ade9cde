import { readFileSync } from 'node:fs';
import type { OpenAPIObject } from '@nestjs/swagger';
import { describe, expect, it } from 'vitest';
import { undocumented } from '../harness/documented-answers.js';
import { readOperations, successOf } from './reader.js';
import { SchemaChecker } from './schemas.js';

const document = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8')) as OpenAPIObject;

describe('the response check of the test server', () => {
  const operation = readOperations(document, 'partner').find(
    ({ name }) => name === 'partner GET /v1/esims/{id}',
  )!;
  const { schema, example } = successOf(operation)[0]!.content['application/json']!;
  const body = example as { readonly data: object };
  const headers = new Headers({ 'content-type': 'application/json; charset=utf-8' });
  const faultOf = (answer: unknown) =>
    undocumented('GET', '/v1/esims/esim_1?x=1', { status: 200, headers, body: answer });

  it('accepts a response that matches the document', () => {
    expect(faultOf(body)).toBeNull();
  });

  it('refuses a field that no schema names, at every level, because it may be a secret', () => {
    for (const answer of [
      { ...body, extra: 1 },
      { ...body, data: { ...body.data, activation_sealed: 'v1.k.x' } },
    ]) {
      expect(new SchemaChecker(document).check(schema!, answer)).toMatch(/additional properties/);
      expect(faultOf(answer)).toMatch(/GET \/v1\/esims\/\{id\}: the body is not as documented/);
    }
  });
});
