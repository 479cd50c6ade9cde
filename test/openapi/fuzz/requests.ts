import type { OpenAPIObject, SchemaObject } from '@nestjs/swagger';
import fc from 'fast-check';
import { follow, type ReadOperation } from '../reader.js';
import { type Draft, FRESH_KEY } from './draft.js';
import type { Ground } from './ground.js';
import { mutationsOf } from './mutations.js';
import { validFields, validValue } from './valid.js';
import { fuzzedPort, type World } from './world.js';

/** One operation with its document and the world that it acts on. */
export interface Target {
  readonly document: OpenAPIObject;
  readonly operation: ReadOperation;
  readonly world: World;
}

/** Operations that end an object use a different id than later ones, by operation. */
const SPARE: Readonly<Record<string, number>> = {
  cancelOrder: 1,
  deleteEndpoint: 2,
  disableEndpoint: 1,
  expireEsim: 1,
  rejectRefund: 1,
  revokeInstallLink: 1,
  resumeEsim: 3,
  suspendEsim: 4,
  revokeEsim: 5,
  replaceEsim: 6,
  revokeKey: 1,
};

/** The documented example request, with real ids. */
export function documentedRequest({ document, operation, world }: Target): Draft {
  const nth = SPARE[operation.raw.operationId ?? ''] ?? 0;
  const example = Object.values(operation.body?.content ?? {})[0]?.example as
    Record<string, unknown> | undefined;
  const known = new Set(Object.keys(bodySchema(document, operation)?.properties ?? {}));
  const body = {
    ...example,
    ...(known.has('esim_id') ? { esim_id: world.realIds(ESIM_OPERATION, 'id')[0] } : {}),
  };
  return {
    ...plainDraft(operation, world),
    ids: idsOf(operation, (parameter) => nthOrLast(world.realIds(operation, parameter), nth)),
    query: requiredQuery(operation).map(
      ({ name, schema }) => `${name}=${encodeURIComponent(String((schema as SchemaObject).example))}`,
    ),
    fields: example
      ? new Map(Object.entries(body).map(([name, value]) => [name, JSON.stringify(value)]))
      : null,
  };
}

function nthOrLast(ids: readonly string[], nth: number): string {
  return ids.at(Math.min(nth, ids.length - 1)) ?? '';
}

const ESIM_OPERATION = { port: 'partner', path: '/v1/esims/{id}' } as ReadOperation;

/** Valid requests with up to two mutations. */
export function fuzzedRequest(target: Target): fc.Arbitrary<Draft> {
  return fc
    .tuple(validRequest(target), fc.array(mutationsOf(groundOf(target)), { maxLength: 2 }))
    .map(([draft, mutations]) => mutations.reduce((mutated, mutate) => mutate(mutated), draft));
}

/** Requests that match the document. */
export function validRequest({ document, operation, world }: Target): fc.Arbitrary<Draft> {
  const schema = bodySchema(document, operation);
  const ids = operation.parameters
    .filter((parameter) => parameter.in === 'path')
    .map(({ name }) => [name, fc.constantFrom(...world.realIds(operation, name))] as const);
  const query = operation.parameters
    .filter((parameter) => parameter.in === 'query' && !OPAQUE.has(parameter.name))
    .map(({ name, schema: form }) => [name, validValue(document, form ?? {})] as const);
  return fc
    .record({
      ids: fc.record(Object.fromEntries(ids)),
      query: fc.record(Object.fromEntries(query), { requiredKeys: requiredQuery(operation).map(nameOf) }),
      fields: schema ? validFields(document, schema) : fc.constant(null),
    })
    .map(({ ids, query, fields }) => ({
      ...plainDraft(operation, world),
      ids,
      query: Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`),
      fields,
      // A request that matches the document is never invalid, but its object may be gone or in the wrong state.
      expected: [
        ...(operation.method === 'get' ? [200, 404] : POSSIBLE),
        ...(CONDITIONAL.some((name) => fields?.has(name) || name in query) ? [400] : []),
      ],
    }));
}

/** All statuses of a write except 400: success, no money, not found, not now, or the wrong state. */
const POSSIBLE = [200, 201, 202, 204, 402, 403, 404, 409, 422];

/** A schema cannot compare times, know which package has days to choose, or exclude a parameter by another. */
const CONDITIONAL = ['since', 'days', 'shelf'];

/** Parameters whose values only the service can create. */
const OPAQUE = new Set(['cursor', 'after']);

function groundOf({ document, operation, world }: Target): Ground {
  return {
    operation,
    body: bodySchema(document, operation),
    token: world.tokens[fuzzedPort(operation)],
    foreignIds: idsOf(operation, (parameter) => world.foreignIds(operation, parameter)),
    methods: Object.keys(document.paths[operation.path] ?? {}).map((method) => method.toUpperCase()),
  };
}

function plainDraft(operation: ReadOperation, world: World): Draft {
  const headers: [string, string][] = [
    ['Host', 'partner.test'],
    ['Authorization', `Bearer ${world.tokens[fuzzedPort(operation)]}`],
  ];
  if (operation.method === 'post') headers.push(['Idempotency-Key', FRESH_KEY]);
  return {
    method: operation.method.toUpperCase(),
    ids: {},
    query: [],
    headers,
    fields: null,
    rawBody: null,
    mutations: [],
    expected: null,
  };
}

const nameOf = ({ name }: { readonly name: string }): string => name;

function requiredQuery({ parameters }: ReadOperation): ReadOperation['parameters'] {
  return parameters.filter((parameter) => parameter.in === 'query' && parameter.required === true);
}

function idsOf<T>(operation: ReadOperation, id: (parameter: string) => T): Record<string, T> {
  const names = operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  return Object.fromEntries(names.map((name) => [name, id(name)]));
}

function bodySchema(document: OpenAPIObject, { body }: ReadOperation): SchemaObject | null {
  const schema = Object.values(body?.content ?? {})[0]?.schema;
  return schema ? follow<SchemaObject>(document, schema) : null;
}
