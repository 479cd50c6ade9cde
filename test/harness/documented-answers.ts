import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { OpenAPIObject } from '@nestjs/swagger';
import { type ReadOperation, readOperations } from '../openapi/reader.js';
import { SchemaChecker } from '../openapi/schemas.js';

interface Documented {
  readonly checker: SchemaChecker;
  readonly operations: readonly (ReadOperation & { readonly pattern: RegExp })[];
}

const DOCUMENTS = { '/v1/': 'partner', '/internal/': 'admin', '/portal/v1/': 'portal' } as const;
const ROOT = path.resolve(import.meta.dirname, '../..');
const read = new Map<string, Documented>();

/**
 * Describes how a successful response deviates from the OpenAPI document, including unknown fields. Returns null when
 * it matches, or when the document has no such operation.
 */
export function undocumented(
  method: string,
  target: string,
  answer: { readonly status: number; readonly headers: Headers; readonly body: unknown },
): string | null {
  const prefix = (Object.keys(DOCUMENTS) as (keyof typeof DOCUMENTS)[]).find((each) =>
    target.startsWith(each),
  );
  if (!prefix || answer.status >= 300 || answer.body === undefined) return null;
  const { operations, checker } = documented(DOCUMENTS[prefix]);
  const pathname = target.split('?')[0]!;
  const operation = operations.find(
    (each) => each.method === method.toLowerCase() && each.pattern.test(pathname),
  );
  const response = operation?.responses.find(({ status }) => status === String(answer.status));
  const type = (answer.headers.get('content-type') ?? '').split(';')[0]!;
  const schema = response?.content[type]?.schema;
  if (!operation || !schema) return null;
  const fault = checker.check(schema, answer.body);
  return fault === null ? null : `${operation.name}: the body is not as documented: ${fault}`;
}

function documented(port: 'partner' | 'admin' | 'portal'): Documented {
  let known = read.get(port);
  if (!known) {
    const text = readFileSync(path.join(ROOT, `docs/openapi/${port}.json`), 'utf8');
    const document = JSON.parse(text) as OpenAPIObject;
    const operations = readOperations(document, port).map((operation) => ({
      ...operation,
      pattern: new RegExp(`^${operation.path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`),
    }));
    known = { checker: new SchemaChecker(document), operations };
    read.set(port, known);
  }
  return known;
}
