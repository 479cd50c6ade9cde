import fc from 'fast-check';
import { type Draft, withHeader } from './draft.js';
import { changed, type Ground, type Mutation } from './ground.js';
import { HOSTILE_BODIES, HOSTILE_JSON } from './hostile.js';

/** Faults of a body: its type, its bytes and its fields. */
export function bodyMutations(ground: Ground): Mutation[] {
  return [...fieldMutations(ground), ...wholeBodyMutations(ground)];
}

const UNKNOWN_FIELDS = [
  'x',
  'id',
  'partner_id',
  'price',
  'A',
  '',
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
];

function fieldMutations({ body }: Ground): Mutation[] {
  const known = Object.keys(body?.properties ?? {});
  const unknown = fc.constantFrom(...UNKNOWN_FIELDS.filter((name) => !known.includes(name)));
  const mutations: Mutation[] = [
    fc.tuple(unknown, fc.constantFrom('1', 'null', '"a"', '{}', '[]')).map(
      ([name, value]) =>
        (draft) =>
          changed(draft, 'unknown field', [400], {
            fields: new Map([...(draft.fields ?? []), [name, value]]),
          }),
    ),
  ];
  if (known.length > 0) {
    const hostileField = fc.tuple(fc.constantFrom(...known), HOSTILE_JSON).map(
      ([name, value]) =>
        (draft: Draft) =>
          changed(draft, `hostile ${name}`, null, {
            fields: new Map([...(draft.fields ?? []), [name, value]]),
          }),
    );
    mutations.push(hostileField, hostileField, hostileField, hostileField);
  }
  if (body?.required?.length) {
    mutations.push(
      fc.constantFrom(...body.required).map(
        (missing) => (draft) =>
          changed(draft, `no ${missing}`, [400], {
            fields: new Map([...(draft.fields ?? [])].filter(([name]) => name !== missing)),
          }),
      ),
    );
  }
  return mutations;
}

const OTHER_TYPES = [
  ...[
    'text/plain',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
  ],
  ...['application/json; charset=latin1', 'application/jsonx', 'json', '*/*', 'application/json, text/plain'],
];

function wholeBodyMutations({ body }: Ground): Mutation[] {
  return [
    HOSTILE_BODIES.map(
      ({ bytes, expected }) =>
        (draft) =>
          changed(draft, 'hostile body', expected, { rawBody: bytes }),
    ),
    fc.constantFrom(...OTHER_TYPES).map((type) => (draft) => ({
      ...withHeader(changed(draft, `content type ${type}`, [415], {}), 'Content-Type', [type]),
      rawBody: Buffer.from('{"a":1}'),
    })),
    fc.constant((draft: Draft) =>
      withHeader(changed(draft, 'gzip', [415], { rawBody: Buffer.from('{}') }), 'Content-Encoding', ['gzip']),
    ),
    fc.constant((draft: Draft) =>
      changed(draft, 'no body', body?.required?.length ? [400] : null, { fields: null }),
    ),
  ];
}
