import type { ParameterObject, SchemaObject } from '@nestjs/swagger';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENTS, EveryPort, OPERATIONS, type PlainAnswer } from './every-port.js';
import { follow, type ReadOperation } from './reader.js';

/** Times from year 1 to 9999, in every RFC 3339 form of UTC and of offsets. */
const TIMES = [
  '0001-01-01T00:00:00Z',
  '0001-01-01T23:59:00+23:59',
  '0099-06-01T00:00:00.5Z',
  '1582-10-10T12:00:00-08:00',
  '1969-12-31T23:59:59.999Z',
  '2024-02-29T00:00:00Z',
  '2026-11-21T10:00:00.123456789Z',
  '2026-11-21T10:00:00-23:59',
  '2026-11-21T10:00:00-00:00',
  '9999-12-31T00:00:59-23:59',
  '9999-12-31T23:59:59.999999999Z',
];

const NO_TIMES = [
  ...['0000-01-01T00:00:00Z', '0000-12-31T23:59:59Z', '10000-01-01T00:00:00Z', '+010000-01-01T00:00:00Z'],
  ...[
    '-000001-01-01T00:00:00Z',
    '+012345-01-01T00:00:00Z',
    '294277-01-01T00:00:00Z',
    '275760-09-14T00:00:00Z',
  ],
  // In UTC these are in the years 10000 and 0.
  ...['9999-12-31T23:59:59-00:01', '9999-12-31T01:00:00-23:59', '0001-01-01T00:00:00+00:01'],
  ...['0001-01-01T23:58:59+23:59', '2026-06-30T23:59:60Z', '2026-11-21T24:00:00Z', '2026-11-21T10:60:00Z'],
  ...['2026-11-21t10:00:00Z', '2026-11-21T10:00:00z', '2026-02-29T00:00:00Z', '1900-02-29T00:00:00Z'],
  ...['2026-13-01T00:00:00Z', '2026-00-01T00:00:00Z', '2026-11-31T00:00:00Z', '2026-11-00T00:00:00Z'],
  ...['2026-11-21', '2026-11-21T10:00Z', '2026-11-21 10:00:00Z', '2026-11-21T10:00:00', '20261121T100000Z'],
  ...['2026-11-21T10:00:00+24:00', '2026-11-21T10:00:00+00:60', '2026-11-21T10:00:00+1:00', '1795255200'],
  ...['2026-11-21T10:00:00.Z', '2026-11-21T10:00:00,5Z', '2026-11-21T10:00:00.1234567890Z', '2026-W47-6'],
  ...[
    'now',
    'infinity',
    '-infinity',
    'epoch',
    'today',
    '4714-11-24T00:00:00Z BC',
    '',
    ' ',
    'null',
    '٢٠٢٦-11-21T10:00:00Z',
  ],
];

/** One of each kind, for every filter and field. All are tried with one filter only. */
const SOME_NO_TIMES = [
  ...[
    '0000-01-01T00:00:00Z',
    '10000-01-01T00:00:00Z',
    '9999-12-31T23:59:59-00:01',
    '0001-01-01T00:00:00+00:01',
  ],
  ...['2026-06-30T23:59:60Z', '2026-11-21T24:00:00Z', 'infinity', '4714-11-24T00:00:00Z BC'],
];

/** ULIDs with the first time, the last time, and times that no ULID or date can have. */
const ODD_ULIDS = ['0'.repeat(26), `7${'Z'.repeat(25)}`, `8${'0'.repeat(25)}`, 'Z'.repeat(26)];

/** One from C0, one from C1, a direction mark and a line separator. */
const CONTROLS = ['\u001b', '\u009b', '\u202e', '\u2028'];
/** Text that a partner stores for itself, that the signature doctor discards, or that is only compared. */
const ANY_TEXT = [
  ...['/metadata', '/headers', '/body', '/computed'],
  ...['/package_id', '/esim_id', '/endpoint_id', '/code'],
];

interface TextField {
  readonly title: string;
  readonly operation: ReadOperation;
  readonly pointer: string;
  /** A valid body with this text in the field. */
  readonly bodyWith: (text: string) => object;
}

let ports: EveryPort;
beforeAll(async () => {
  ports = await EveryPort.start();
});
afterAll(() => ports.stop());

const isTime = (schema: object | undefined): boolean =>
  schema !== undefined && 'format' in schema && schema.format === 'date-time';
const queryOf = ({ parameters }: ReadOperation): ParameterObject[] =>
  parameters.filter((parameter) => parameter.in === 'query');

function get(
  operation: ReadOperation,
  values: Readonly<Record<string, string>>,
  path?: string,
): Promise<PlainAnswer> {
  // The portal's lists need a mode, even if their document does not require it.
  const needed = queryOf(operation).filter(({ name, required }) => required === true || name === 'mode');
  const query = new URLSearchParams({
    ...Object.fromEntries(
      needed.map(({ name, schema }) => [name, String((schema as SchemaObject).enum?.[0])]),
    ),
    ...values,
  });
  const target = `${path ?? ports.pathOf(operation.port, operation.path)}?${query.toString()}`;
  return ports.call(operation.port, { method: 'GET', target });
}

const timeFilters = OPERATIONS.filter(({ method }) => method === 'get').flatMap((operation) =>
  queryOf(operation)
    .filter(({ schema }) => isTime(schema))
    .map(({ name }) => ({ operation, name, title: `${operation.name}?${name}` })),
);

describe('a time filter', () => {
  it.each(timeFilters)('$title accepts every time of the years 1 to 9999', async ({ operation, name }) => {
    const isFirst = timeFilters[0]!.operation === operation;
    for (const time of isFirst ? TIMES : [TIMES[0]!, TIMES.at(-1)!]) {
      const { status, text } = await get(operation, { [name]: time });
      expect([time, status], text).toEqual([time, 200]);
    }
  });

  it.each(timeFilters)('$title refuses other texts', async ({ operation, name }) => {
    for (const text of SOME_NO_TIMES) expectInvalid(await get(operation, { [name]: text }), `?${name}`, text);
  });

  it('refuses everything that only resembles a time', async () => {
    const { operation, name } = timeFilters[0]!;
    for (const text of NO_TIMES) expectInvalid(await get(operation, { [name]: text }), `?${name}`, text);
  });

  const filtered = new Map(timeFilters.map(({ operation }) => [operation.name, operation]));
  it.each([...filtered])('%s accepts any time window, including an empty one', async (_name, operation) => {
    const names = queryOf(operation)
      .filter(({ schema }) => isTime(schema))
      .map(({ name }) => name);
    for (const ends of [
      [TIMES[0]!, TIMES.at(-1)!],
      [TIMES.at(-1)!, TIMES[0]!],
    ]) {
      const { status } = await get(
        operation,
        Object.fromEntries(names.map((name, nth) => [name, ends[nth % 2]!])),
      );
      expect(status).toBe(200);
    }
  });
});

function expectInvalid({ status, text }: PlainAnswer, pointer: string, value: string): void {
  expect([value, status], text).toEqual([value, 400]);
  const { code, errors } = JSON.parse(text) as { code: string; errors: { pointer: string }[] };
  expect([code, errors[0]?.pointer]).toEqual(['validation_failed', pointer]);
}

const timeFields = OPERATIONS.flatMap((operation) => {
  const content = Object.values(operation.body?.content ?? {})[0];
  if (!content?.schema) return [];
  const { properties = {} } = follow<SchemaObject>(DOCUMENTS[operation.port], content.schema);
  return Object.entries(properties)
    .filter(([, schema]) => isTime(schema))
    .map(([name]) => ({
      operation,
      example: content.example as object | undefined,
      name,
      title: `${operation.name} ${name}`,
    }));
});

describe('a time in a body', () => {
  const write = (
    { operation, example, name }: (typeof timeFields)[number],
    time: string,
  ): Promise<PlainAnswer> => {
    const endpoint =
      'signature-doctor' === operation.path.split('/').at(-1) ? { endpoint_id: ports.endpoint.id } : {};
    return ports.call(operation.port, {
      method: operation.method.toUpperCase(),
      target: ports.pathOf(operation.port, operation.path),
      body: JSON.stringify({ ...example, ...endpoint, [name]: time }),
    });
  };

  it.each(timeFields)('$title gets a 2xx or a precise 400 for the years 1 to 9999', async (field) => {
    // An expiry in the past and a replay since the distant past are refused with a 400.
    for (const time of TIMES) {
      const { status, text } = await write(field, time);
      expect([time, status < 500], text).toEqual([time, true]);
      if (status === 400) expect(text).toContain(`"pointer":"/${field.name}"`);
    }
  });

  it.each(timeFields)('$title refuses texts that are not a time', async (field) => {
    for (const text of SOME_NO_TIMES) expectInvalid(await write(field, text), `/${field.name}`, text);
  });
});

it('refuses a replay that starts in the future', async () => {
  const target = `${ports.endpoint.path}/replay`;
  for (const dry_run of [true, false]) {
    const body = JSON.stringify({ since: new Date(Date.now() + 3_600_000).toISOString(), dry_run });
    expectInvalid(await ports.call('admin', { method: 'POST', target, body }), '/since', String(dry_run));
  }
});

it('responds to ids of any time in paths and filters', async () => {
  const odd: string[] = [];
  for (const operation of OPERATIONS.filter(({ method }) => method === 'get')) {
    const path = ports.pathOf(operation.port, operation.path);
    const ids = path.split('/').filter((segment) => /^[a-z]+_[0-9A-Z]{26}$/.test(segment));
    const paths = ids.flatMap((id) =>
      ODD_ULIDS.map((ulid) => path.replace(id, `${id.slice(0, id.indexOf('_'))}_${ulid}`)),
    );
    for (const each of paths) {
      const { status } = await get(operation, {}, each);
      if (status >= 500) odd.push(`${status} ${each}`);
    }
    const texts = queryOf(operation).filter(
      ({ schema }) => schema && 'type' in schema && schema.type === 'string',
    );
    for (const { name } of texts.filter(({ schema }) => !isTime(schema))) {
      // The time of these ids selects a partition.
      for (const prefix of ['evt', 'dlv'])
        for (const ulid of ODD_ULIDS) {
          const { status } = await get(operation, { [name]: `${prefix}_${ulid}` });
          if (status >= 500) odd.push(`${status} ${path}?${name}=${prefix}_${ulid}`);
        }
    }
  }
  expect(odd).toEqual([]);
});

const fields = OPERATIONS.flatMap((operation) => {
  const content = Object.values(operation.body?.content ?? {})[0];
  if (!content?.schema) return [];
  const example = (content.example ?? {}) as Record<string, unknown>;
  return textsIn(operation, content.schema, '', (value) => ({ ...example, ...(value as object) }));
});

/** All texts in a body, including nested objects and lists. */
function textsIn(
  operation: ReadOperation,
  schema: object,
  pointer: string,
  around: (value: unknown) => object,
): TextField[] {
  const { type, properties = {}, items } = follow<SchemaObject>(DOCUMENTS[operation.port], schema);
  const types = [type].flat();
  if (types.includes('string') && !ANY_TEXT.includes(pointer))
    return [{ title: `${operation.name} ${pointer}`, operation, pointer, bodyWith: (text) => around(text) }];
  return [
    ...Object.entries(properties).flatMap(([name, property]) =>
      textsIn(operation, property, `${pointer}/${name}`, (value) => around({ [name]: value })),
    ),
    ...(items ? textsIn(operation, items, `${pointer}/0`, (value) => around([value])) : []),
  ];
}

it('covers every text that people can set', () => {
  const titles = fields.map(({ title }) => title).join('\n');
  for (const name of [
    '/name',
    '/email',
    '/description',
    '/note',
    '/actor/id',
    '/actor/name',
    '/url',
    '/reference',
  ])
    expect(titles).toContain(name);
});

it.each(fields)(
  'refuses control characters and direction marks in $title',
  async ({ operation, pointer, bodyWith }) => {
    for (const control of CONTROLS) {
      const { status, text } = await ports.call(operation.port, {
        method: operation.method.toUpperCase(),
        target: ports.pathOf(operation.port, operation.path),
        body: JSON.stringify(bodyWith(`a${control}b`)),
      });
      expect([escape(control), status], text).toEqual([escape(control), 400]);
      expect(
        (JSON.parse(text) as { errors: { pointer: string }[] }).errors.map((each) => each.pointer),
      ).toContainEqual(expect.stringMatching(new RegExp(`^${pointer.replace(/\/0$/, '')}(/|$)`)));
    }
  },
);

it('keeps line breaks in notes, and letters and emoji of any language everywhere', async () => {
  const { admin } = ports.world.service;
  const name = 'Zoë 旅行 👩‍🚀 می‌خواهم';
  const partner = await admin.post('/internal/v1/partners', { name });
  expect([partner.status, partner.body.data.name]).toEqual([201, name]);
  const note = 'first line\nsecond\r\nthird';
  const deposit = await admin.post(
    `/internal/v1/partners/${partner.body.data.id as string}/wallet/deposits`,
    {
      amount: { amount: 1, currency: 'USD' },
      reference: 'r-1',
      note,
    },
  );
  expect([deposit.status, deposit.body.data.note]).toEqual([201, note]);
});

const escape = (text: string): string => text.charCodeAt(0).toString(16);
