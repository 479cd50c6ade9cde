import fc from 'fast-check';
import type { Draft } from './draft.js';
import { changed, type Ground, type Mutation } from './ground.js';
import { HOSTILE_ID, HOSTILE_QUERY_VALUE } from './hostile.js';

const UNKNOWN_PARAMETERS = [
  ...[
    'x',
    'offset',
    'page',
    'LIMIT',
    'limit[]',
    'a[b]',
    '',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
  ],
];

/** Faults of a query. */
export function queryMutations({ operation }: Ground): Mutation[] {
  const known = operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
  const mutations: Mutation[] = [
    fc
      .constantFrom(...UNKNOWN_PARAMETERS)
      .map(
        (name) => (draft) =>
          changed(draft, `unknown parameter ${name}`, [400], { query: [...draft.query, `${name}=1`] }),
      ),
    fc.constant((draft: Draft) =>
      changed(draft, 'long URL', [414], { query: [...draft.query, `x=${'y'.repeat(4_200)}`] }),
    ),
  ];
  if (known.length > 0) {
    const hostile = fc.tuple(fc.constantFrom(...known), HOSTILE_QUERY_VALUE).map(
      ([name, value]) =>
        (draft: Draft) =>
          changed(draft, `hostile ?${name}`, null, { query: [...draft.query, `${name}=${value}`] }),
    );
    mutations.push(
      hostile,
      hostile,
      hostile,
      fc
        .constantFrom(...known)
        .map(
          (name) => (draft) =>
            changed(draft, `repeated ?${name}`, [400], { query: [`${name}=1`, `${name}=1`] }),
        ),
    );
  }
  return mutations;
}

/** Faults of the ids in a path. */
export function pathMutations({ operation, foreignIds, body }: Ground): Mutation[] {
  const names = operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  if (names.length === 0) return [];
  const replace = (draft: Draft, name: string, id: string): Record<string, string> => ({
    ...draft.ids,
    [name]: id,
  });
  return [
    fc.tuple(fc.constantFrom(...names), HOSTILE_ID).map(
      ([name, id]) =>
        (draft) =>
          changed(draft, `hostile {${name}}`, null, { ids: replace(draft, name, id) }),
    ),
    fc
      .constantFrom(...names)
      .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...foreignIds[name]!)))
      .map(
        ([name, id]) =>
          (draft) =>
            // Even a documented body may get a 400.
            changed(draft, `foreign {${name}}`, body ? [400, 404] : [404], { ids: replace(draft, name, id) }),
      ),
  ];
}
