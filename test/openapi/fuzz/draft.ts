import { randomUUID } from 'node:crypto';
import type { ReadOperation } from '../reader.js';

/** A request before serialization. Values of `fields` are JSON text, so that they can be anything. */
export interface Draft {
  readonly method: string;
  /** The raw path value of each parameter. */
  readonly ids: Readonly<Record<string, string>>;
  /** Raw `name=value` parts. */
  readonly query: readonly string[];
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null means no body at all. */
  readonly fields: ReadonlyMap<string, string> | null;
  /** Sent instead of `fields`. */
  readonly rawBody: Buffer | null;
  /** The changes to a valid request. */
  readonly mutations: readonly string[];
  /** The only correct statuses, or null when several mutations make them unpredictable. */
  readonly expected: readonly number[] | null;
}

/** Replaced with a new key in each sent request, because fast-check sends a counterexample many times. */
export const FRESH_KEY = '{fresh}';

/** The bytes of a request. */
export function toBytes(operation: ReadOperation, draft: Draft): Buffer {
  const body = bodyOf(draft);
  const headers = draft.headers.map(
    ([name, value]) => [name, value === FRESH_KEY ? randomUUID() : value] as const,
  );
  if (body !== null) {
    headers.push(['Content-Length', String(body.length)]);
    if (!hasHeader(draft, 'content-type')) headers.push(['Content-Type', 'application/json']);
  }
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = `${draft.method} ${targetOf(operation, draft)} HTTP/1.1\r\n${lines}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body ?? Buffer.alloc(0)]);
}

export function targetOf(operation: ReadOperation, { ids, query }: Draft): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_match, name: string) => ids[name] ?? '');
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}

export function hasHeader(draft: Draft, name: string): boolean {
  return draft.headers.some(([header]) => header.toLowerCase() === name);
}

/** The draft with all lines of a header replaced. */
export function withHeader(draft: Draft, name: string, values: readonly string[]): Draft {
  const others = draft.headers.filter(([header]) => header.toLowerCase() !== name.toLowerCase());
  return { ...draft, headers: [...others, ...values.map((value) => [name, value] as const)] };
}

function bodyOf({ fields, rawBody }: Draft): Buffer | null {
  if (rawBody !== null) return rawBody;
  if (fields === null) return null;
  const members = [...fields].map(([name, fragment]) => `${JSON.stringify(name)}:${fragment}`);
  return Buffer.from(`{${members.join(',')}}`);
}
