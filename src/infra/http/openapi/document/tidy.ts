import type { ComponentsObject, OpenAPIObject, OperationObject } from '@nestjs/swagger';
import { METHODS } from './operation.js';

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

/** Removes the components that nothing refers to any more. */
export function withoutUnusedComponents(document: OpenAPIObject): OpenAPIObject {
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

/** Paths stay in the order of the modules; everything below has one order, so that a diff shows changes only. */
export function inReadingOrder(document: OpenAPIObject): OpenAPIObject {
  for (const items of [document.paths, document.webhooks ?? {}]) {
    for (const item of Object.values(items)) {
      for (const method of METHODS) {
        const operation = item[method];
        if (operation) item[method] = orderOperation(operation);
      }
    }
  }
  const { openapi, info, servers, tags, paths, webhooks, components } = document;
  const { title, version, description = '' } = info;
  return {
    openapi,
    info: { title, version, description },
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
