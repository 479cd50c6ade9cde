import type { ComponentsObject, OpenAPIObject, OperationObject } from '@nestjs/swagger';
import { type HeaderName, headerRefs, HEADERS, PARAMETERS, SCHEMAS } from './components.js';
import { closeRequestBodies, exampleOf } from './bodies.js';
import { linksOf } from './links.js';
import {
  addParameters,
  type DescribedOperation,
  describeOperations,
  METHODS,
  type Port,
  successOf,
} from './operation.js';
import { addProblems, problemExamples, rateHeaders, shareProblems } from './problems.js';
import { nameEnvelopes, withSchemaNames } from './schema-names.js';
import { useCommonForms } from './value-forms.js';

/** Name of a port's security scheme: a token in `Authorization`, or a session cookie. */
export function securitySchemeOf(port: Port): string {
  return port === 'portal' ? 'session' : 'bearer';
}

/**
 * Adds to a fresh Swagger document everything common to a port's operations: security, headers, parameters, the
 * problems of D6 and D7, closed request bodies, examples. Names its schemas, and returns it in a stable order.
 */
export function completeDocument(fresh: OpenAPIObject, port: Port): OpenAPIObject {
  const document = withSchemaNames(fresh);
  const operations = describeOperations(document, port);
  document.components = {
    ...document.components,
    schemas: { ...document.components?.schemas, ...structuredClone(SCHEMAS) },
    headers: structuredClone(HEADERS),
    parameters: { ...PARAMETERS },
    examples: problemExamples(),
  };
  closeRequestBodies(document, operations);
  for (const described of operations) {
    const { traits } = described;
    described.operation.security = traits.anonymous ? [] : [{ [securitySchemeOf(port)]: [] }];
    addExamples(document, described);
    addSuccessHeaders(described);
  }
  nameEnvelopes(document, operations);
  useCommonForms(document, operations);
  for (const described of operations) {
    addParameters(described);
    addProblems(described);
  }
  document.components.responses = shareProblems(operations);
  return inReadingOrder(withoutUnusedComponents(document));
}

function addExamples(document: OpenAPIObject, { operation }: DescribedOperation): void {
  const { requestBody } = operation;
  if (requestBody && 'content' in requestBody) {
    for (const media of Object.values(requestBody.content)) {
      if (media.schema) media.example ??= exampleOf(document, media.schema, 'shortest');
    }
  }
  for (const media of Object.values(successOf(operation).response.content ?? {})) {
    if (media.schema) media.example ??= exampleOf(document, media.schema, 'every field');
  }
}

function addSuccessHeaders(described: DescribedOperation): void {
  const { operation, method, traits } = described;
  const every: HeaderName[] = [
    'X-Request-Id',
    ...rateHeaders(described),
    ...(traits.cached ? (['ETag'] as const) : []),
  ];
  const { status, response } = successOf(operation);
  const { description, content } = response;
  const headers = headerRefs([
    ...every,
    ...(traits.location ? (['Location'] as const) : []),
    ...(method === 'post' ? (['Idempotent-Replayed'] as const) : []),
    ...(traits.waits ? (['Preference-Applied'] as const) : []),
  ]);
  operation.responses[status] = {
    description,
    headers,
    ...(content ? { content } : {}),
    ...linksOf(described),
  };
  if (traits.cached) {
    operation.responses['304'] = {
      description: 'Not modified since the `ETag` in `If-None-Match`. The only response without a body.',
      headers: headerRefs(every),
    };
  }
}

const KINDS = ['schemas', 'responses', 'parameters', 'headers', 'examples'] as const;
const OPERATION_KEYS = [
  'operationId',
  'summary',
  'description',
  'tags',
  'security',
  'parameters',
  'requestBody',
  'responses',
] as const;

/** Removes components without references. */
function withoutUnusedComponents(document: OpenAPIObject): OpenAPIObject {
  for (;;) {
    const used = new Set(JSON.stringify(document).match(/(?<="\$ref":")[^"]+/g));
    let removed = 0;
    for (const kind of KINDS) {
      const components = document.components?.[kind] ?? {};
      for (const name of Object.keys(components)) {
        if (used.has(`#/components/${kind}/${name}`)) continue;
        delete components[name];
        removed++;
      }
    }
    if (removed === 0) return document;
  }
}

/** Paths keep the order of the modules; everything below is sorted, so that a diff shows changes only. */
function inReadingOrder(document: OpenAPIObject): OpenAPIObject {
  for (const items of [document.paths, document.webhooks ?? {}]) {
    for (const item of Object.values(items)) {
      for (const method of METHODS) {
        const operation = item[method];
        if (operation) item[method] = orderOperation(operation);
      }
    }
  }
  const { openapi, info, servers, tags, paths, webhooks, components } = document;
  const { title, version, description = '', contact, license } = info;
  return {
    openapi,
    info: { title, version, description, ...(contact ? { contact } : {}), ...(license ? { license } : {}) },
    ...(servers ? { servers } : {}),
    ...(tags && tags.length > 0 ? { tags } : {}),
    paths,
    ...(webhooks ? { webhooks } : {}),
    components: orderComponents(components ?? {}),
  };
}

function orderOperation(operation: OperationObject): OperationObject {
  const entries = OPERATION_KEYS.flatMap((key) =>
    operation[key] === undefined ? [] : [[key, operation[key]] as const],
  );
  return { ...(Object.fromEntries(entries) as Partial<OperationObject>), responses: operation.responses };
}

function orderComponents(components: ComponentsObject): ComponentsObject {
  const { securitySchemes } = components;
  const ordered = KINDS.map((kind) => [kind, sorted(components[kind] ?? {})] as const);
  return {
    ...(securitySchemes ? { securitySchemes } : {}),
    ...(Object.fromEntries(ordered) as ComponentsObject),
  };
}

function sorted(record: object): object {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
