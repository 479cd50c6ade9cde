import type {
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  ResponseObject,
} from '@nestjs/swagger';
import type { ErrorCode } from '../../../../common/errors/index.js';
import { REFUSALS, RESPONSE_TRAITS, type ResponseTraits, type Wording, WORDING } from '../responds.js';
import type { IdPrefix } from '../../../../common/ids.js';
import { parameterRef } from './components.js';

export type Port = 'partner' | 'admin' | 'portal';

export const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
export type Method = (typeof METHODS)[number];

/** One operation as Swagger found it, with the additional data of its decorators. */
export interface DescribedOperation {
  readonly port: Port;
  readonly path: string;
  readonly method: Method;
  readonly operation: OperationObject;
  readonly refusals: readonly ErrorCode[];
  readonly traits: ResponseTraits;
}

interface Extensions {
  [REFUSALS]?: readonly ErrorCode[];
  [RESPONSE_TRAITS]?: ResponseTraits;
  [WORDING]?: Wording;
}

/** Every operation of a fresh document; removes the decorators' extensions from it. */
export function describeOperations(document: OpenAPIObject, port: Port): DescribedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      if (!operation) return [];
      const extensions = operation as Extensions;
      const { [REFUSALS]: all = [], [RESPONSE_TRAITS]: traits = {}, [WORDING]: on = {} } = extensions;
      for (const name of [REFUSALS, RESPONSE_TRAITS, WORDING] as const) delete extensions[name];
      const { tag, ...words } = (port === 'partner' ? undefined : on[port]) ?? {};
      Object.assign(operation, words, tag === undefined ? {} : { tags: [tag] });
      // Only portal sessions step up, and the portal's pages follow no `Location`.
      const refusals = port === 'admin' ? all.filter((code) => code !== 'step_up_required') : all;
      return [
        {
          ...{ port, path, method, operation, refusals },
          traits: port === 'portal' ? omitLocation(traits) : traits,
        },
      ];
    }),
  );
}

function omitLocation({ location: _, ...traits }: ResponseTraits): ResponseTraits {
  return traits;
}

/** The operation's own parameters, before references are added. */
export function parametersOf({ operation }: DescribedOperation): ParameterObject[] {
  return (operation.parameters ?? []).filter((parameter) => 'name' in parameter);
}

/** Path parameters in path order, including the one read by `@PartnerId()`, which Swagger does not see. */
function pathParametersOf(described: DescribedOperation): ParameterObject[] {
  const known = parametersOf(described).filter((parameter) => parameter.in === 'path');
  return [...described.path.matchAll(/\{(\w+)\}/g)].map(
    ([, name = '']) =>
      known.find((parameter) => parameter.name === name) ?? {
        ...{ name, required: true, in: 'path', schema: { type: 'string' } },
      },
  );
}

/** The one success response of an operation. @throws Error when there is none */
export function successOf(operation: OperationObject): { status: string; response: ResponseObject } {
  const status = Object.keys(operation.responses).find((code) => code.startsWith('2')) ?? '200';
  const response = operation.responses[status];
  if (!response || '$ref' in response) throw new Error(`${operation.operationId} has no success response`);
  return { status, response };
}

/** Id prefix after each path segment (D10). */
const ID_AFTER: Readonly<Record<string, IdPrefix>> = {
  'api-keys': 'key',
  catalog: 'pkg',
  deliveries: 'dlv',
  esims: 'esim',
  events: 'evt',
  'install-links': 'ilk',
  orders: 'ord',
  packages: 'pkg',
  partners: 'ptn',
  'portal-sessions': 'ps',
  replays: 'rpl',
  requests: 'req',
  topups: 'top',
  'refund-requests': 'rfr',
  'webhook-endpoints': 'whe',
};
const EXAMPLE_ULID = '01KAEXAMPLE000000000000000';

/** Describes the path's ids and adds the operation's request headers. */
export function addParameters(described: DescribedOperation): void {
  const { operation, port, method, traits } = described;
  const headers: ReferenceObject[] = [];
  if (method === 'post') {
    headers.push(parameterRef(port === 'partner' ? 'IdempotencyKey' : 'OptionalIdempotencyKey'));
  }
  if (traits.cached) headers.push(parameterRef('IfNoneMatch'));
  if (traits.waits) headers.push(parameterRef('PreferWait'));
  if (port === 'admin') headers.push(parameterRef('Actor'));
  operation.parameters = [
    ...pathParametersOf(described).map((parameter) => describePathId(parameter, described.path)),
    ...parametersOf(described).filter((parameter) => parameter.in !== 'path'),
    ...headers,
  ];
}

function describePathId(parameter: ParameterObject, path: string): ParameterObject {
  const segments = path.split('/');
  const prefix = ID_AFTER[segments[segments.indexOf(`{${parameter.name}}`) - 1] ?? ''];
  if (prefix === undefined) throw new Error(`no id is known for {${parameter.name}} of ${path}`);
  return {
    ...parameter,
    description: `Starts with \`${prefix}_\`. A malformed id gets 404, like an unknown one.`,
    example: prefix === 'pkg' ? 'pkg_fr_1gb_7d' : `${prefix}_${EXAMPLE_ULID}`,
  };
}
