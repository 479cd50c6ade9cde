import type {
  HeaderObject,
  MediaTypeObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  RequestBodyObject,
  ResponseObject,
  SchemaObject,
} from '@nestjs/swagger';
import { type ErrorCode, PROBLEM_CONTENT_TYPE } from '../../src/common/errors/index.js';
import { type Method, METHODS, type Port } from '../../src/infra/http/openapi/document/operation.js';

/** A response with resolved references. */
export interface ReadResponse {
  readonly status: string;
  readonly headers: Readonly<Record<string, HeaderObject>>;
  readonly content: Readonly<Record<string, MediaTypeObject>>;
}

/** An operation of a document with resolved references, as a client would read it. */
export interface ReadOperation {
  readonly port: Port;
  /** E.g. `partner POST /v1/orders`. */
  readonly name: string;
  readonly method: Method;
  readonly path: string;
  readonly raw: OperationObject;
  readonly parameters: readonly ParameterObject[];
  readonly body: RequestBodyObject | null;
  readonly responses: readonly ReadResponse[];
}

export function readOperations(document: OpenAPIObject, port: Port): ReadOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) =>
      item[method] ? [readOperation(document, port, { method, path }, item[method])] : [],
    ),
  );
}

function readOperation(
  document: OpenAPIObject,
  port: Port,
  { method, path }: { method: Method; path: string },
  raw: OperationObject,
): ReadOperation {
  return {
    port,
    name: `${port} ${method.toUpperCase()} ${path}`,
    method,
    path,
    raw,
    parameters: (raw.parameters ?? []).map((parameter) => follow<ParameterObject>(document, parameter)),
    body: raw.requestBody ? follow<RequestBodyObject>(document, raw.requestBody) : null,
    responses: Object.entries(raw.responses).map(([status, response]) => {
      const { headers = {}, content = {} } = follow<ResponseObject>(document, response!);
      const read = Object.entries(headers).map(([name, header]) => [
        name,
        follow<HeaderObject>(document, header),
      ]);
      return { status, headers: Object.fromEntries(read) as Record<string, HeaderObject>, content };
    }),
  };
}

/**
 * Resolves a reference of the document.
 * @throws Error for a reference that does not resolve
 */
export function follow<T>(document: OpenAPIObject, value: object): T {
  const { $ref } = value as Partial<ReferenceObject>;
  if ($ref === undefined) return value as T;
  let target: unknown = document;
  for (const step of $ref.slice(2).split('/')) {
    target = (target as Record<string, unknown> | undefined)?.[
      step.replaceAll('~1', '/').replaceAll('~0', '~')
    ];
  }
  if (!$ref.startsWith('#/') || target === undefined) throw new Error(`${$ref} leads nowhere`);
  return follow<T>(document, target as object);
}

export const successOf = ({ responses }: ReadOperation): readonly ReadResponse[] =>
  responses.filter(({ status }) => status.startsWith('2'));
export const problemsOf = ({ responses }: ReadOperation): readonly ReadResponse[] =>
  responses.filter(({ status }) => Number(status) >= 400);
/** The possible codes of a problem. */
export const codesOf = (response: ReadResponse): ErrorCode[] =>
  Object.keys(response.content[PROBLEM_CONTENT_TYPE]?.examples ?? {}) as ErrorCode[];
/** All objects with named properties below a schema. */
export function objectsIn(document: OpenAPIObject, schema: object): SchemaObject[] {
  const target = follow<SchemaObject>(document, schema);
  const parts = [
    ...Object.values(target.properties ?? {}),
    ...(target.anyOf ?? []),
    ...(target.allOf ?? []),
    ...(target.oneOf ?? []),
    ...(target.items ? [target.items] : []),
  ].flatMap((part) => objectsIn(document, part));
  return target.properties ? [target, ...parts] : parts;
}
