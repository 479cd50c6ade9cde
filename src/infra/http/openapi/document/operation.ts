import type { OpenAPIObject, OperationObject, ParameterObject } from '@nestjs/swagger';
import type { ErrorCode } from '../../../../common/errors/index.js';
import { RESPONSE_TRAITS, type ResponseTraits, REFUSALS } from '../extensions.js';

export type Port = 'partner' | 'admin';

export const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
export type Method = (typeof METHODS)[number];

/** One operation as Swagger found it, with what its decorators said beyond OpenAPI. */
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
}

/** Every operation of a fresh document; the decorators' extensions are taken out of it. */
export function describeOperations(document: OpenAPIObject, port: Port): DescribedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      if (!operation) return [];
      const { [REFUSALS]: refusals = [], [RESPONSE_TRAITS]: traits = {} } = operation as Extensions;
      delete (operation as Extensions)[REFUSALS];
      delete (operation as Extensions)[RESPONSE_TRAITS];
      return [{ port, path, method, operation, refusals, traits }];
    }),
  );
}

/** The operation's own parameters, before references are added. */
export function parametersOf({ operation }: DescribedOperation): ParameterObject[] {
  return (operation.parameters ?? []).filter((parameter) => 'name' in parameter);
}
