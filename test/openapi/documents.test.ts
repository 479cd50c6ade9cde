import type { SchemaObject } from '@nestjs/swagger';
import { beforeAll, describe, expect, it } from 'vitest';
import { createDocuments, type Documents } from '../../src/apps/openapi.js';
import { ERROR_CATALOG, ERROR_CODES, PROBLEM_CONTENT_TYPE } from '../../src/common/errors/index.js';
import { EVENT_TYPES } from '../../src/events/index.js';
import type { Port } from '../../src/infra/http/openapi/document/operation.js';
import {
  codesOf,
  follow,
  objectsIn,
  problemsOf,
  type ReadOperation,
  readOperations,
  type ReadResponse,
  successOf,
} from './reader.js';
import { SchemaChecker } from './schemas.js';

const RATE_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

let documents: Documents;
let operations: readonly ReadOperation[];

beforeAll(async () => {
  documents = await createDocuments();
  operations = (['partner', 'admin', 'portal'] as const).flatMap((port) =>
    readOperations(documents[port], port),
  );
});

/** Names of the operations for which `isWrong` holds. A test expects none. */
function wrong(isWrong: (operation: ReadOperation) => boolean): string[] {
  return operations.filter(isWrong).map(({ name }) => name);
}

const hasHeader = (operation: ReadOperation, name: string): boolean =>
  operation.parameters.some((parameter) => parameter.in === 'header' && parameter.name === name);

describe.each(['partner', 'admin', 'portal'] as const)('the %s document', (port: Port) => {
  it('is valid OpenAPI 3.1, and every reference resolves', () => {
    const document = documents[port];
    expect(document.openapi).toBe('3.1.0');
    const references = JSON.stringify(document).match(/(?<="\$ref":")[^"]+/g) ?? [];
    expect(references.length).toBeGreaterThan(100);
    for (const $ref of new Set(references)) expect(follow(document, { $ref })).toBeTypeOf('object');
  });

  it('contains no leftovers of OpenAPI 3.0 or of our decorators', () => {
    expect(JSON.stringify(documents[port])).not.toMatch(/"nullable"|"x-refusals"|"x-response-traits"/);
  });
});

describe('every operation', () => {
  it('has a unique id, a summary, tags and the scheme of its port', () => {
    for (const port of ['partner', 'admin', 'portal'] as const) {
      const ids = operations.filter((operation) => operation.port === port).map(({ raw }) => raw.operationId);
      expect(ids.filter((id, i) => !id || ids.indexOf(id) !== i)).toEqual([]);
    }
    expect(wrong(({ raw }) => !raw.summary || raw.summary.length > 90 || raw.tags?.length !== 1)).toEqual([]);
    const open = wrong(({ raw, port }) => {
      const scheme = port === 'portal' ? 'session' : 'bearer';
      return JSON.stringify(raw.security) !== JSON.stringify([{ [scheme]: [] }]);
    });
    // The code in the body is its credential.
    expect(open).toEqual(['portal POST /portal/v1/session']);
  });

  it('has one success response in the envelope', () => {
    expect(wrong((operation) => successOf(operation).length !== 1)).toEqual([]);
    for (const operation of operations) {
      const media = successOf(operation)[0]!.content['application/json'];
      const schema = follow<SchemaObject>(documents[operation.port], media!.schema!);
      const isPage = 'has_more' in (schema.properties ?? {});
      const beside = operation.path.endsWith('/esims/{id}/plans') ? ['pooled'] : [];
      const paging = isPage ? ['has_more', 'next_cursor'] : [];
      const fields = ['request_id', 'data', ...beside, ...paging];
      expect(schema.required, operation.name).toEqual(fields);
      expect(alwaysIn(schema), operation.name).toEqual(fields);
      const takesCursor = operation.parameters.some((parameter) => parameter.name === 'cursor');
      expect(isPage || !takesCursor, operation.name).toBe(true);
    }
  });

  it('always returns X-Request-Id, and the rate limit headers to partners', () => {
    expect(
      wrong(({ responses }) => responses.some(({ headers }) => !headers['X-Request-Id']?.required)),
    ).toEqual([]);
    const lacksRate = ({ headers }: ReadResponse): boolean => RATE_HEADERS.some((name) => !headers[name]);
    expect(
      wrong(
        ({ port, responses }) =>
          port === 'partner' &&
          responses.some((r) => !['401', '408', '431'].includes(r.status) && lacksRate(r)),
      ),
    ).toEqual([]);
  });

  it('accepts the headers of its port and method', () => {
    expect(wrong((operation) => hasHeader(operation, 'X-Actor') !== (operation.port === 'admin'))).toEqual(
      [],
    );
    expect(
      wrong((operation) => hasHeader(operation, 'Idempotency-Key') !== (operation.method === 'post')),
    ).toEqual([]);
    const isRequired = ({ port, parameters }: ReadOperation): boolean =>
      parameters.every((p) => p.name !== 'Idempotency-Key' || p.required === (port === 'partner'));
    expect(wrong((operation) => !isRequired(operation))).toEqual([]);
  });

  it('returns 304 without a body if and only if it accepts If-None-Match', () => {
    for (const operation of operations) {
      const notModified = operation.responses.find(({ status }) => status === '304');
      expect(Boolean(notModified), operation.name).toBe(hasHeader(operation, 'If-None-Match'));
      if (!notModified) continue;
      expect([Object.keys(notModified.content), notModified.headers['ETag']?.required]).toEqual([[], true]);
    }
  });
});

describe('every problem', () => {
  it('is problem+json with codes of the error catalog under their own status', () => {
    for (const operation of operations) {
      const statuses = problemsOf(operation).map(({ status }) => status);
      expect(statuses, operation.name).toEqual(
        expect.arrayContaining(['400', '401', '403', '405', '500', '503']),
      );
      for (const response of problemsOf(operation)) {
        expect(Object.keys(response.content), operation.name).toEqual([PROBLEM_CONTENT_TYPE]);
        const codes = codesOf(response);
        expect(codes.map((code) => ERROR_CATALOG[code].status)).toEqual(
          codes.map(() => Number(response.status)),
        );
      }
    }
  });

  it('has the headers that the status requires', () => {
    const needs: Record<string, string> = {
      401: 'WWW-Authenticate',
      405: 'Allow',
      429: 'Retry-After',
      503: 'Retry-After',
    };
    const lacks = ({ status, headers }: ReadResponse): boolean => status in needs && !headers[needs[status]!];
    // WWW-Authenticate does not apply to cookies.
    const isAsked = (port: Port, { status }: ReadResponse): boolean => port !== 'portal' || status !== '401';
    expect(
      wrong(({ responses, port }) => responses.some((each) => isAsked(port, each) && lacks(each))),
    ).toEqual([]);
  });

  it('covers the whole error catalog', () => {
    const covered = new Set(operations.flatMap((operation) => problemsOf(operation).flatMap(codesOf)));
    expect(ERROR_CODES.filter((code) => !covered.has(code))).toEqual([]);
  });
});

/** Fields that only a list with `shelf=true` has: elsewhere, a package is the same bytes in a list and alone. */
const ONLY_ON_A_SHELF = ['dropped', 'shelf'];

function alwaysIn({ properties = {} }: SchemaObject): string[] {
  return Object.keys(properties).filter((field) => !ONLY_ON_A_SHELF.includes(field));
}

describe('every schema', () => {
  it('is closed for requests, and open with every property required for responses', () => {
    for (const operation of operations) {
      const document = documents[operation.port];
      for (const { schema } of Object.values(operation.body?.content ?? {})) {
        const open = objectsIn(document, schema!).filter(
          (object) => object.additionalProperties === undefined,
        );
        expect(open, operation.name).toEqual([]);
      }
      for (const { schema } of successOf(operation).flatMap(({ content }) => Object.values(content))) {
        for (const object of objectsIn(document, schema!)) {
          expect(object.additionalProperties, operation.name).not.toBe(false);
          expect(object.required, operation.name).toEqual(alwaysIn(object));
        }
      }
    }
  });

  it('accepts its examples', () => {
    for (const port of ['partner', 'admin', 'portal'] as const) {
      const checker = new SchemaChecker(documents[port]);
      const ofPort = operations.filter((operation) => operation.port === port);
      for (const operation of ofPort) {
        const media = [operation.body?.content ?? {}, ...operation.responses.map(({ content }) => content)];
        for (const { schema, example, examples } of media.flatMap((content) => Object.values(content))) {
          const values = examples
            ? Object.values(examples).map((item) => follow<{ value: unknown }>(documents[port], item).value)
            : [example as unknown];
          for (const value of values) expect(checker.check(schema!, value), operation.name).toBeNull();
        }
      }
    }
  });

  it('has a type or a choice wherever it describes a value', () => {
    for (const { parameters, name } of operations) {
      for (const parameter of parameters) {
        const schema = parameter.schema as SchemaObject;
        expect(schema.type ?? schema.anyOf, `${name} ${parameter.name}`).toBeDefined();
      }
    }
  });
});

describe('a client generated from a document', () => {
  it('has schemas named after their content, and envelopes named after their data', () => {
    for (const { components } of Object.values(documents)) {
      const names = Object.keys(components?.schemas ?? {});
      expect(names.filter((name) => name.endsWith('Dto'))).toEqual([]);
    }
    const schemaOf = ({ content }: ReadResponse): object => content['application/json']!.schema!;
    const unnamed = wrong(
      (operation) =>
        !/\/\w+(Response|Page)$/.test(JSON.stringify(schemaOf(successOf(operation)[0]!)).slice(0, -2)),
    );
    expect(unnamed).toEqual([]);
  });

  it('has a single schema for problems', () => {
    const isProblem = ({ content }: ReadResponse): boolean =>
      JSON.stringify(content[PROBLEM_CONTENT_TYPE]?.schema) === '{"$ref":"#/components/schemas/Problem"}';
    expect(wrong((operation) => !problemsOf(operation).every(isProblem))).toEqual([]);
  });

  it('has a description of every operation and tag', () => {
    expect(wrong(({ raw }) => !raw.description)).toEqual([]);
    for (const port of ['partner', 'admin', 'portal'] as const) {
      const { tags = [], webhooks = {} } = documents[port];
      const used = operations.filter((each) => each.port === port).flatMap(({ raw }) => raw.tags ?? []);
      const sent = Object.values(webhooks).flatMap(({ post }) => post?.tags ?? []);
      expect(tags.map(({ name }) => name).sort()).toEqual([...new Set([...used, ...sent])].sort());
      expect(tags.filter(({ name, description }) => !description || !/^[A-Z][\w ]+$/.test(name))).toEqual([]);
    }
  });

  it('leaves defaults to the service', () => {
    for (const operation of operations) {
      const bodies = Object.values(operation.body?.content ?? {}).flatMap(({ schema }) =>
        objectsIn(documents[operation.port], schema!),
      );
      const sent = JSON.stringify([operation.parameters, bodies]);
      expect(sent, operation.name).not.toContain('"default"');
      for (const [, value] of sent.matchAll(/"x-default":"?([^",}]+)/g))
        expect(sent, operation.name).toContain(`Default: \`${value}\`.`);
    }
  });

  it('knows the width of every integer that 32 bits may not hold', () => {
    const { Money, EsimData } = documents.partner.components!.schemas as Record<string, SchemaObject>;
    expect(Money!.properties!['amount']).toMatchObject({ type: 'integer', format: 'int64' });
    expect(EsimData!.properties!['total_bytes']).toMatchObject({
      type: ['integer', 'null'],
      format: 'int64',
    });
    for (const document of Object.values(documents)) {
      const narrow = JSON.stringify(document).match(/\{[^{}]*"type":"integer"[^{}]*\}/g) ?? [];
      expect(narrow.filter((schema) => !/"format":"int64"|"maximum":\d{1,9}\b|"enum"/.test(schema))).toEqual(
        [],
      );
    }
  });
});

describe('the webhooks section', () => {
  it('describes every event type with the headers of a delivery', () => {
    const { webhooks = {} } = documents.partner;
    expect(Object.keys(webhooks)).toEqual([...EVENT_TYPES]);
    const checker = new SchemaChecker(documents.partner);
    for (const { post } of Object.values(webhooks)) {
      const names = (post!.parameters ?? []).map((parameter) => 'name' in parameter && parameter.name);
      expect(names).toEqual(['X-Service-Signature', 'X-Service-Event', 'X-Service-Delivery']);
      const { schema, example } = (post!.requestBody as { content: ReadResponse['content'] }).content[
        'application/json'
      ]!;
      expect(checker.check(schema!, example)).toBeNull();
      expect(checker.check({ $ref: '#/components/schemas/Event' }, example)).toBeNull();
    }
  });

  it('exists only in the partner document', () => {
    expect(documents.admin.webhooks).toBeUndefined();
  });
});
