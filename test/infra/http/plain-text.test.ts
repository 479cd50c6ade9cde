import { expect, it } from 'vitest';
import { escapeControls, isLine, LINES_PATTERN, withoutControls } from '../../../src/common/plain-text.js';

/** Ranges of refused UTF-16 code units. */
const REFUSED: readonly (readonly [number, number])[] = [
  ...([
    [0x00, 0x1f],
    [0x7f, 0x9f],
    [0x61c, 0x61c],
    [0x200e, 0x200f],
  ] as const),
  ...([
    [0x2028, 0x202e],
    [0x2066, 0x206f],
    [0xfeff, 0xfeff],
    [0xfff9, 0xfffb],
  ] as const),
];

it('detects the control characters among all characters of the basic plane', () => {
  const refused: number[] = [];
  for (let unit = 0; unit <= 0xffff; unit++) if (!isLine(String.fromCharCode(unit))) refused.push(unit);
  const wanted = REFUSED.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  expect(refused).toEqual(wanted);
  const text = String.fromCharCode(...wanted);
  expect(withoutControls(`a${text}b`)).toBe('a b');
  expect(isLine(escapeControls(JSON.stringify(text)))).toBe(true);
  expect(JSON.parse(escapeControls(JSON.stringify(text)))).toBe(text);
});

it('accepts line breaks in multi-line text, but no lone carriage return, which would overwrite the line', () => {
  const lines = new RegExp(LINES_PATTERN);
  for (const text of ['a', 'a\nb', 'a\r\nb', '\n', '👩‍🚀 می‌خواهم'])
    expect([text, lines.test(text)]).toEqual([text, true]);
  for (const text of ['', 'a\rb', 'a\r', 'a\tb', 'a\u001bb', 'a\n\u202e'])
    expect([text, lines.test(text)]).toEqual([text, false]);
});
