import { type OpenAPIObject } from '@nestjs/swagger';
import { METHODS } from '../../infra/http/openapi/document/index.js';

/** What differs between the committed document and the code, one line each; empty when nothing does. */
export function describeDrift(committed: Partial<OpenAPIObject>, generated: OpenAPIObject): string[] {
  const before = partsOf(committed);
  const after = partsOf(generated);
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const lines = names.flatMap((name) => {
    if (!before.has(name)) return [`new: ${name}`];
    if (!after.has(name)) return [`gone: ${name}`];
    return before.get(name) === after.get(name) ? [] : [`changed: ${name}`];
  });
  if (lines.length > 0) return lines;
  return JSON.stringify(committed) === JSON.stringify(generated) ? [] : ['changed: the order of things'];
}

/** Operations by method and path, components by name, and the rest by its key. */
function partsOf(document: Partial<OpenAPIObject>): Map<string, string> {
  const parts = new Map<string, string>();
  const { paths = {}, webhooks = {}, components = {}, ...rest } = document;
  for (const [path, item] of [...Object.entries(paths), ...Object.entries(webhooks)]) {
    for (const method of METHODS) {
      if (item[method]) parts.set(`${method.toUpperCase()} ${path}`, JSON.stringify(item[method]));
    }
  }
  for (const [kind, members] of Object.entries(components)) {
    for (const [name, member] of Object.entries(members as Record<string, unknown>)) {
      parts.set(`components.${kind}.${name}`, JSON.stringify(member));
    }
  }
  for (const [key, value] of Object.entries(rest)) parts.set(key, JSON.stringify(value));
  return parts;
}
