import type { SchemaObject } from '@nestjs/swagger';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOCUMENTS, EveryPort, OPERATIONS } from './every-port.js';
import { follow, type ReadOperation } from './reader.js';

/** One of C0, of C1, of the marks of direction and of what breaks lines. */
const CONTROLS = ['\u001b', '\u009b', '\u202e', '\u2028'];
/** What a partner stores for itself, what the signature doctor forgets, and what is only compared. */
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

const fields = OPERATIONS.flatMap((operation) => {
  const content = Object.values(operation.body?.content ?? {})[0];
  if (!content?.schema) return [];
  const example = (content.example ?? {}) as Record<string, unknown>;
  return textsIn(operation, content.schema, '', (value) => ({ ...example, ...(value as object) }));
});

/** Every text of a body, those of objects and lists within it too. */
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

it('knows the texts that people set', () => {
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
  'refuses controls and direction marks in $title',
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
