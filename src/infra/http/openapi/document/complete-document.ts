import type { OpenAPIObject, ResponseObject } from '@nestjs/swagger';
import { HEADERS, headerRefs, type HeaderName, PARAMETERS, SCHEMAS } from './components.js';
import { exampleOf } from './examples.js';
import { type DescribedOperation, describeOperations, type Port } from './operation.js';
import { addParameters } from './parameters.js';
import { addProblems, problemExamples, rateHeaders } from './problem-responses.js';
import { closeRequestBodies } from './request-bodies.js';
import { shareProblems } from './shared-problems.js';
import { inReadingOrder, withoutUnusedComponents } from './tidy.js';

/** The name of the security scheme of both ports. */
export const SECURITY_SCHEME = 'bearer';

/**
 * Adds to a fresh document of Swagger what holds for every operation of a port: security, headers, parameters, the
 * problems of D6 and D7, closed request bodies, examples. Changes the document and answers it in a stable order.
 */
export function completeDocument(document: OpenAPIObject, port: Port): OpenAPIObject {
  const operations = describeOperations(document, port);
  document.components = {
    ...document.components,
    schemas: { ...document.components?.schemas, ...SCHEMAS },
    headers: { ...HEADERS },
    parameters: { ...PARAMETERS },
    examples: problemExamples(),
  };
  closeRequestBodies(document, operations);
  for (const described of operations) {
    described.operation.security = [{ [SECURITY_SCHEME]: [] }];
    addExamples(document, described);
    addSuccessHeaders(described);
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
  ]);
  operation.responses[status] = { description, headers, ...(content ? { content } : {}) };
  if (traits.cached) {
    operation.responses['304'] = {
      description: 'Not modified since the `ETag` in `If-None-Match`. The one answer without a body.',
      headers: headerRefs(every),
    };
  }
}

function successOf(operation: DescribedOperation['operation']): { status: string; response: ResponseObject } {
  const status = Object.keys(operation.responses).find((code) => code.startsWith('2')) ?? '200';
  const response = operation.responses[status];
  if (!response || '$ref' in response) throw new Error(`${operation.operationId} has no success response`);
  return { status, response };
}
