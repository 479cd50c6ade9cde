import fc from 'fast-check';

/** Hostile texts contain this marker, so that the test detects an error response that echoes its input (D6). */
export const MARKER = 'zq7marker';

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

/** JSON texts that no field may fail on with a 500. */
export const HOSTILE_JSON: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...[
      'null',
      'true',
      '0',
      '-0',
      '-1',
      '1.5',
      '9007199254740992',
      '1e400',
      '-1e400',
      '12345678901234567890',
    ],
    ...['""', '" "', '[]', '{}', '[null]', '[[]]', '["a","b"]', '{"a":1}', deep(31), deep(40), deep(400)],
    ...['"a\\u0000b"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u202e\\u0007"', '"\\u007f"', '"😀é\u2028"'],
    ...['"__proto__"', '{"__proto__":{"x":1}}', '{"constructor":{"prototype":{"x":1}}}', '{"toString":1}'],
    ...[
      '"2026-02-31T00:00:00Z"',
      '"99999-01-01T00:00:00Z"',
      '"2026-11-21T10:00:00"',
      '"\'; DROP TABLE orders; --"',
    ],
    ...[
      `"${MARKER}"`,
      `"${MARKER.repeat(1_000)}"`,
      `["${MARKER}"]`,
      `{"${MARKER}":1}`,
      '{"amount":1e308,"currency":"USD"}',
    ],
    `{${Array.from({ length: 30 }, (_, i) => `"k${i}":"v"`).join(',')}}`,
  ),
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.double().map((number) => JSON.stringify(number)),
);

/** Complete bodies, each with the correct statuses for an operation with required fields. */
export const HOSTILE_BODIES: fc.Arbitrary<{ bytes: Buffer; expected: readonly number[] | null }> = fc.oneof(
  fc
    .constantFrom(
      ...['null', 'true', '1', '"x"', '[]', '[{}]', deep(40), deep(20_000), '"'.repeat(2)],
      ...[
        '{',
        '{"a"',
        '{"a":}',
        '{a:1}',
        "{'a':1}",
        '{"a":1,}',
        'NaN',
        '{}{}',
        '\u0000',
        '{"a":01}',
        '{"a":"\u0001"}',
      ],
      ...[
        '{"__proto__":{}}',
        '{"constructor":{"prototype":{}}}',
        '{"a":{"__proto__":1}}',
        '{"\\u005f_proto__":1}',
      ],
      `{${Array.from({ length: 1_001 }, (_, i) => `"k${i}":0`).join(',')}}`,
    )
    .map((text) => ({ bytes: Buffer.from(text), expected: [400] })),
  fc
    .constantFrom(
      Buffer.from([0xff, 0xfe, 0x7b]),
      Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
    )
    .map((bytes) => ({ bytes, expected: [400] })),
  fc.constant({ bytes: Buffer.from('{}'), expected: null }),
  fc.constant({ bytes: Buffer.from(`{"a":"${'x'.repeat(65_528)}"}`), expected: [400] }),
  fc.constant({ bytes: Buffer.from(`{"a":"${'x'.repeat(65_529)}"}`), expected: [413] }),
  fc.constant({ bytes: Buffer.alloc(200_000, 0x20), expected: [413] }),
  fc
    .uint8Array({ minLength: 1, maxLength: 40 })
    .map((bytes) => ({ bytes: Buffer.from(bytes), expected: [400] })),
);

/** Raw query values. */
export const HOSTILE_QUERY_VALUE: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...['', '0', '-1', '1.5', '1e400', '9007199254740993', '101', '+1', '0x10', 'null', 'true', '%20', '[]'],
    ...[
      '%00',
      '%ff',
      '%ED%A0%80',
      '%C3%28',
      '%E2%80%AE',
      '%0d%0aX-Injected:1',
      '%27%20OR%201=1--',
      '__proto__',
    ],
    ...[
      '2026-02-31T00:00:00Z',
      '2026-11-21T10:00:00Z',
      '2026-11-21T10:00:00%2B25:00',
      '%',
      '%zz',
      'a%',
      MARKER,
    ],
    'x'.repeat(1_500),
  ),
  fc.string({ unit: 'grapheme' }).map((text) => encodeURIComponent(text)),
);

/** Raw values for an id in a path. */
export const HOSTILE_ID: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...[
      '%00',
      '%2e%2e',
      '..',
      '.',
      '%2F',
      '%5c',
      '%ff',
      '%ED%A0%80',
      '%',
      '%zz',
      '*',
      '%20',
      '-1',
      '0',
      '1e400',
    ],
    ...[
      'null',
      'undefined',
      '__proto__',
      'constructor',
      'prototype',
      'toString',
      '%27%20OR%201=1--',
      '%F0%9F%98%80',
    ],
    ...[
      'ord_',
      'ord_01',
      'ORD_01KAEXAMPLE000000000000000',
      '%0d%0aX-Injected:1',
      'x'.repeat(300),
      'x'.repeat(3_000),
      MARKER,
    ],
  ),
  fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => encodeURIComponent(text)),
);
