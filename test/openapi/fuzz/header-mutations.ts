import fc from 'fast-check';
import { type Draft, withHeader } from './draft.js';
import { changed, type Ground, type Mutation } from './ground.js';

/** Faults of the method and the headers. */
export function headerMutations({ operation, token, methods }: Ground): Mutation[] {
  const { port, method } = operation;
  const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE'].filter(
    (m) => !methods.includes(m),
  );
  const set = (
    name: string,
    expected: readonly number[] | null,
    header: string,
    values: readonly string[],
  ) => {
    return (draft: Draft): Draft => withHeader(changed(draft, name, expected, {}), header, values);
  };
  return [
    fc
      .constantFrom(...badAuthorizations(token))
      .map((values) => set('authorization', [401], 'Authorization', values)),
    fc
      .constantFrom(...others)
      .map((other) => (draft) => changed(draft, `method ${other}`, [405], { method: other })),
    fc.constant(set('no Host', [400], 'Host', [])),
    fc.constant(set('huge header', [431], 'X-Fill', ['y'.repeat(20_000)])),
    fc.constantFrom('x', '100-Continue, x', '').map((value) => set('expect', null, 'Expect', [value])),
    fc
      .constantFrom('a'.repeat(1_000), '\u00e9\u0001', '"', 'req_01KAEXAMPLE000000000000000')
      .map((value) => set('hostile request id', null, 'X-Request-Id', [value])),
    fc
      .constantFrom('*', 'W/"', '"', ',,,', 'W/"x", "y"', 'x'.repeat(3_000))
      .map((value) => set('hostile If-None-Match', null, 'If-None-Match', [value])),
    ...(port === 'admin'
      ? [
          fc
            .constantFrom('\u00e9', 'y'.repeat(129), '')
            .map((v) => set('hostile X-Actor', [400], 'X-Actor', [v])),
        ]
      : []),
    ...(method === 'post' ? [idempotencyKeys(port === 'partner', set)] : []),
  ];
}

function idempotencyKeys(
  required: boolean,
  set: (
    name: string,
    expected: readonly number[],
    header: string,
    values: readonly string[],
  ) => (draft: Draft) => Draft,
): Mutation {
  const key = '0123456789abcdef';
  const bad = [
    [`"${key}"`],
    [key, key],
    [key, `${key}2`],
    ['1234567'],
    ['k'.repeat(129)],
    ['a b c d e f'],
    [`${key}é`],
    [''],
  ];
  return fc
    .constantFrom(...bad, ...(required ? [[]] : []))
    .map((values) => set('idempotency key', [400], 'Idempotency-Key', values));
}

function badAuthorizations(token: string): string[][] {
  const last = token.endsWith('a') ? 'b' : 'a';
  return [
    [],
    [''],
    ['Bearer'],
    ['Bearer '],
    [token],
    [`Basic ${token}`],
    [`Bearer  ${token}`],
    [`Bearer\t${token}`],
    [`Bearer ${token} x`],
    [`Bearer ${token},${token}`],
    [`Bearer "${token}"`],
    [`Bearer ${token.slice(0, -1)}${last}`],
    [`Bearer ${token}`, `Bearer ${token}`],
    [`Bearer ${token}`, 'Basic x'],
    [`Bearer ${'é'.repeat(20)}`],
    [`Bearer ${'k'.repeat(5_000)}`],
  ];
}
