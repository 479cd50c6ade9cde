/** The largest accepted body, and a field size that leaves room for the rest of the object. */
const BODY_BYTES = 65_536;
const FIELD_CHARACTERS = 60_000;

const repeat = (text: string, characters: number): string =>
  text.repeat(Math.floor(characters / text.length));
const listOf = (item: string, characters: number): string =>
  `[${repeat(`${item},`, characters - item.length - 2)}${item}]`;
const nested = (open: string, middle: string, close: string, levels: number): string =>
  `${open.repeat(levels)}${middle}${close.repeat(levels)}`;
const members = (count: number, member: (nth: number) => string): string =>
  `{${Array.from({ length: count }, (_, nth) => member(nth)).join(',')}}`;

/** JSON texts that are the most expensive to parse, validate or print for their size. */
const JSON_SHAPES: Readonly<Record<string, string>> = {
  '3,000 nested lists around 26,000 elements': nested('[', listOf('0', 52_000), ']', 3_000),
  '8,000 nested lists': nested('[', '', ']', 8_000),
  '8,000 nested objects': nested('{"a":', '1', '}', 8_000),
  '20,000 lists that are not closed': '['.repeat(20_000),
  '30 nested lists around 900 elements': nested('[', listOf('0', 1_800), ']', 30),
  'a list of 32,000 numbers': listOf('0', 64_000),
  'a list of 21,000 objects': listOf('{}', 63_000),
  'a list of 1,000 objects': listOf('{}', 3_000),
  'a list of 1,000 texts': listOf('"2001:db8::1"', 13_900),
  'a list of 10,000 lists of lists': listOf('[[]]', 50_000),
  '6,000 names': members(6_000, (nth) => `"k${nth}":0`),
  '1,000 names': members(1_000, (nth) => `"k${nth}":0`),
  '999 long names': members(999, (nth) => `"${'~/'.repeat(28)}${nth}":0`),
  '990 names in objects of objects': members(330, (nth) => `"k${nth}":{"a":{"b":1}}`),
  'one name 10,000 times': members(10_000, () => '"a":1'),
  '3,000 objects': listOf('{"a":{"b":{}}}', 45_000),
  '__proto__ in 3,000 nested objects': nested('{"a":', '{"__proto__":1}', '}', 3_000),
  '5,000 times __proto__': listOf('"__proto__"', 60_000),
  '__proto__ before 60,000 blanks': `{"__proto__"${' '.repeat(60_000)}`,
  '2,000 constructors': members(2_000, () => '"constructor":{"prototype":1}'),
  '10,000 escapes': `["${repeat(String.raw`\u0041`, 60_000)}"]`,
  '30,000 escaped quotes': `["${repeat(String.raw`\"`, 60_000)}"]`,
  '5,000 surrogate pairs': `["${repeat(String.raw`\ud83d\ude00`, 60_000)}"]`,
  'a number of 60,000 digits': `[${'9'.repeat(60_000)}]`,
  'a fraction of 60,000 digits': `[0.${'1'.repeat(60_000)}]`,
  '20 numbers of 3,000 digits': listOf('7'.repeat(3_000), 60_000),
  '60,000 blanks': `{"x":0}${' '.repeat(60_000)}`,
};

/** Complete bodies: an object for each shape. A shape that is not an object becomes the value of an unknown field. */
export function worstBodies(): [name: string, body: string][] {
  return Object.entries(JSON_SHAPES)
    .map(([name, json]): [string, string] =>
      json.startsWith('{') ? [name, json] : [`{"x": ${name}}`, `{"x":${json}}`],
    )
    .filter(([, body]) => Buffer.byteLength(body) <= BODY_BYTES);
}

/** Values of one field as JSON: every shape, and texts that make patterns backtrack. */
export function worstValues(): [name: string, json: string][] {
  const texts = worstTexts(FIELD_CHARACTERS).map(([name, text]): [string, string] => [
    name,
    JSON.stringify(text),
  ]);
  return [...Object.entries(JSON_SHAPES), ...texts].filter(isShort);
}

/** Values of a field with long text, which may be JSON of any shape. */
export function worstLongTexts(): [name: string, json: string][] {
  return Object.entries(JSON_SHAPES)
    .map(([name, json]): [string, string] => [
      `text: ${name}`,
      JSON.stringify(json.slice(0, FIELD_CHARACTERS)),
    ])
    .filter(isShort);
}

const isShort = ([, json]: [string, string]): boolean => Buffer.byteLength(json) <= BODY_BYTES - 1_000;

/** Texts that make an ambiguous pattern backtrack. */
const REPEATED = [
  'a',
  ' ',
  '9.',
  'é',
  '😀',
  '/',
  '::',
  '-',
  '%',
  '"',
  'a@',
  't=1,',
  'v1=,',
  '2001:db8::',
  '{"a":',
  '\n',
];
const BEGINNINGS = ['https://a.', 'a@b.', 't=1,v1=', '2026-11-21T10:00:00.'];

/** Texts of maximum length: one item repeated, alone or after the start of a valid value. */
export function worstTexts(characters: number): [name: string, text: string][] {
  return [
    ...REPEATED.map((unit): [string, string] => [
      `${JSON.stringify(unit)} again and again`,
      repeat(unit, characters),
    ]),
    ...BEGINNINGS.map((start): [string, string] => [
      `${start}a.a.…!`,
      `${start}${repeat('a.', characters)}!`,
    ]),
    ['2026-11-21T10:00:00.000…Z', `2026-11-21T10:00:00.${'0'.repeat(characters)}Z`],
  ];
}
